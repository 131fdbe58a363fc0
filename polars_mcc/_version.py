"""The version, for the package, its command line and its reports."""

__version__ = "1.0.0"
