"""The version, for the package, its command line and its reports."""

__version__ = "0.1.0"
