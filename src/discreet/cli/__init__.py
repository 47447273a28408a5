"""The command line. Thin: it reads options, calls the library, and prints."""

from discreet.cli.main import main

__all__ = ["main"]
