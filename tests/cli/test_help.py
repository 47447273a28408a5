"""Help is instant, and fits a terminal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Discreet = Callable[..., Any]
COMMANDS = (
    "",
    "train",
    "account",
    "data",
    "data get",
    "data list",
    "data schema",
    "certificate",
    "recipes",
    "audit",
)
HEAVY = ("torch", "numpy", "scipy", "pyarrow", "rich")

HELP = """
import sys
from discreet.cli import main
try:
    main({words!r})
except SystemExit as left:
    assert left.code == 0
found = [name for name in {heavy!r} if name in sys.modules]
assert not found, found
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal_of_80_columns(discreet: Discreet, command: str) -> None:
    answer = discreet(f"{command} --help")
    assert answer.code == 0
    assert answer.err == ""
    assert [line for line in answer.out.splitlines() if len(line) > 80] == []


def test_help_of_every_command_imports_nothing_that_takes_time() -> None:
    calls = [HELP.format(words=[*command.split(), "--help"], heavy=HEAVY) for command in COMMANDS]
    done = subprocess.run([sys.executable, "-c", "\n".join(calls)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_import_that_takes_time_would_be_noticed() -> None:
    slow = "import numpy\n" + HELP.format(words=["--help"], heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", slow], capture_output=True, text=True)
    assert "AssertionError: ['numpy']" in done.stderr


def test_the_version(discreet: Discreet) -> None:
    from discreet import __version__

    assert discreet("--version").out == f"discreet {__version__}\n"


def test_the_recipes_are_listed_and_each_shows_its_settings(discreet: Discreet) -> None:
    from dataclasses import fields

    from discreet.recipes import RECIPES

    listed = discreet("recipes").out
    for name, recipe in RECIPES.items():
        assert name in listed
        shown = discreet(f"recipes {name}").out
        rows = dict(line.partition(" ")[::2] for line in shown.splitlines())
        assert {each.name for each in fields(recipe)} <= rows.keys()
        assert [line for line in shown.splitlines() if len(line.rstrip()) > 80] == []
