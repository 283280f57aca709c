"""The measures: PDQ, and those of plain boxes."""
