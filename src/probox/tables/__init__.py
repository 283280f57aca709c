"""Tables: frozen, with columns that are checked once, on creation."""
