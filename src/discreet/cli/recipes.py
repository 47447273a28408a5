"""`discreet recipes`: what there is to train with."""

from __future__ import annotations

import argparse
from dataclasses import fields

from rich.console import Console
from rich.table import Table

from discreet.recipes import RECIPES, FirstOrder, find


def recipes(arguments: argparse.Namespace) -> int:
    """List all recipes, or the settings of one."""
    console = Console(highlight=False)
    if arguments.name:
        _settings(find(arguments.name), console)
        return 0
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("recipe")
    table.add_column("what it does")
    table.add_column("from")
    for recipe in RECIPES.values():
        table.add_row(recipe.name, recipe.summary, recipe.paper)
    console.print(table)
    console.print("\ndiscreet recipes NAME shows the settings of one.")
    return 0


def _settings(recipe: type[FirstOrder], console: Console) -> None:
    told = described(recipe)
    console.print(f"[bold]{recipe.name}[/]: {recipe.summary}\n{recipe.paper}\n")
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("setting", "default", "meaning"):
        table.add_column(heading)
    for name, default in defaults(recipe).items():
        table.add_row(name, "" if default is None else str(default), told.get(name, ""))
    console.print(table)


def defaults(recipe: type[FirstOrder]) -> dict[str, object]:
    """The recipe's settings as they stand when nothing is said."""
    from discreet import schedules

    values = {field.name: getattr(recipe(), field.name) for field in fields(recipe)}
    return {
        name: f"{value.kind}:value={value.value:g}" if isinstance(value, schedules.Constant) else value
        for name, value in values.items()
    }


def described(recipe: type[FirstOrder]) -> dict[str, str]:
    """What the docstrings of the recipe and its parents say of each setting."""
    told: dict[str, str] = {}
    for cls in reversed(recipe.__mro__):
        arguments = (cls.__doc__ or "").partition("Args:")[2]
        name = ""
        for line in arguments.splitlines():
            head, colon, rest = line.strip().partition(":")
            indent = len(line) - len(line.lstrip())
            if colon and head.isidentifier() and indent <= 8:
                name, told[head] = head, rest.strip()
            elif name and line.strip():
                told[name] += " " + line.strip()
    return told
