"""Small things that every room may use."""
