"""The version of probox; the package's metadata read it from here."""

__version__ = "0.1.0"
