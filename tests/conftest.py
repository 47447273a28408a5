"""What all tests share: the folder of real data sets."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Continuous integration repeats itself; at one's desk every run looks for new examples.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


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
