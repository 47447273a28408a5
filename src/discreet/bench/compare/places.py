"""Where a comparison keeps what, below its folder."""

from __future__ import annotations

STUDY = "study.json"
CELLS = "cells"
ERROR = "error.txt"
"""Why a cell failed, in the cell's folder."""
SECONDS = "seconds.json"
"""How long a cell's last attempt took; it is written last, when all the rest is there."""
