"""The version, importable from everywhere."""

__version__ = "0.1.0"
