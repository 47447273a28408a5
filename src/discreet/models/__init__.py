"""The papers' networks, short enough to read, by name."""

from discreet.models.registry import ModelSpec, build, default_name, names, options_of

__all__ = ["ModelSpec", "build", "default_name", "names", "options_of"]
