"""Where records come from: named data sets, tables, image folders, arrays; and what is public about them."""

from discreet.data.description import Description
from discreet.data.named import load, names
from discreet.data.records import InputStore, Records, Splits

__all__ = ["Description", "InputStore", "Records", "Splits", "load", "names"]
