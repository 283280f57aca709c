"""What evaluations and files can tell beyond their numbers."""
