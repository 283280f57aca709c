"""The version of probox; the package's metadata read it from here."""

__all__ = ["__version__"]

__version__ = "0.1.0"
