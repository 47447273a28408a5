"""Recipes next to each other at the same certified epsilon: what is compared, carried out, and put in a table."""

from discreet.bench.compare.carry_out import carry_out
from discreet.bench.compare.results import Row, collect
from discreet.bench.compare.study import Cell, Method, Study
from discreet.bench.compare.tables import markdown, write

__all__ = ["Cell", "Method", "Row", "Study", "carry_out", "collect", "markdown", "write"]
