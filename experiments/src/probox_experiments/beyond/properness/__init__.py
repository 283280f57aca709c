"""Which reports scores ask for where the truth is known: experiment `proper`."""
