"""Open Images: a CSV file of all boxes, with columns by name."""
