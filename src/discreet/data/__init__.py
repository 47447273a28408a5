"""Where records come from: named data sets, tables, image folders, arrays; and what is public about them."""

from discreet.data.declaration import Declaration
from discreet.data.description import Description
from discreet.data.named import load, names
from discreet.data.opening import default_model, open_data
from discreet.data.records import InputStore, Records, Splits

__all__ = [
    "Declaration",
    "Description",
    "InputStore",
    "Records",
    "Splits",
    "default_model",
    "load",
    "names",
    "open_data",
]
