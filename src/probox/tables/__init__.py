"""What everything speaks: frozen tables of columns, checked once when they are made."""
