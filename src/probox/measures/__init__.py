"""The measures: PDQ, and those of plain boxes; `probox.measures.registry` lists them all."""
