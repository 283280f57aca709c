"""Version of probox, also read by the package metadata."""

__version__ = "0.1.0"
