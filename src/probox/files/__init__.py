"""Input files without surprises, output files all or none: what every reader and writer stands on."""
