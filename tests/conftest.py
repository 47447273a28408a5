"""What all tests share: the folder of real data sets."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder that $DISCREET_DATA names; where CI runs, real data must be there."""
    declared = os.environ.get("DISCREET_DATA")
    if declared and Path(declared).is_dir():
        return Path(declared)
    problem = f"DISCREET_DATA is {declared!r}; it must name the folder that holds the real data sets"
    if os.environ.get("CI"):
        pytest.fail(problem)
    pytest.skip(problem)
