"""What detector frameworks hold in memory, taken by shape: no framework is imported."""
