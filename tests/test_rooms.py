"""The rooms of the house: what may import what. Imports go downwards only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "discreet"
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("accounting",),
    ("schedules", "typed"),
    (
        "noise",
        "sampling",
        "gradients",
        "data",
        "features",
        "models",
        "memory",
        "gates",
        "optimizers",
        "adambc",
    ),
    ("plan",),
    ("recipes",),
    ("training",),
    ("jobs",),
    ("audit", "bench", "report"),
    ("cli",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
DOORS = ("__init__", "__main__")
"""The package's own entrances: they hand out what the rooms hold."""


def imported(tree: ast.AST, package: tuple[str, ...]) -> set[str]:
    """All modules that a module of `package` imports, wherever in it, by their full names."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            name = ".".join(filter(None, (base, node.module)))
            found |= {f"{name}.{alias.name}" for alias in node.names} if name == "discreet" else {name}
    return found


def upward(path: Path, root: Path) -> list[str]:
    """The imports of one module that lead to a room above its own, or beside it on another wall."""
    parts = path.relative_to(root).with_suffix("").parts
    room = parts[0]
    if room in DOORS:
        return []
    problems = []
    for name in sorted(imported(ast.parse(path.read_text()), ("discreet", *parts[:-1]))):
        top, _, rest = name.partition(".")
        if room == "accounting" and top == "torch":
            problems.append(f"{'/'.join(parts)} imports torch")
        if top != "discreet" or not rest:
            continue
        other = rest.split(".")[0]
        if other == "__version__" or other == room:
            continue
        allowed = FLOOR.get(other, len(FLOORS)) <= FLOOR.get(room, -1)
        if not allowed or (room == "accounting" and other != "errors"):
            problems.append(f"{'/'.join(parts)} imports {name}")
    return problems


def modules() -> list[Path]:
    """All modules of the package."""
    return sorted(SOURCE.rglob("*.py"))


def test_every_room_has_a_floor() -> None:
    rooms = {path.relative_to(SOURCE).with_suffix("").parts[0] for path in modules()}
    assert rooms - set(DOORS) <= FLOOR.keys()


def test_imports_go_downwards_only() -> None:
    assert [problem for path in modules() for problem in upward(path, SOURCE)] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("accounting/made_up.py", "from discreet.noise.key import RunKey"),
        ("accounting/made_up.py", "import torch"),
        ("accounting/selective/made_up.py", "from ...schedules import Step"),
        ("accounting/made_up.py", "def late():\n    from discreet import plan"),
        ("data/made_up.py", "from discreet.training.run import Run"),
        ("gradients/made_up.py", "import discreet.recipes.dp_sgd"),
        ("training/made_up.py", "from discreet.jobs.job import Job"),
        ("report/made_up.py", "from discreet.cli import main"),
        ("sampling.py", "if TYPE_CHECKING:\n    from discreet.plan import Plan"),
        ("attic/made_up.py", "from discreet.errors import UserError"),
    ],
)
def test_an_import_that_leads_upwards_is_found(tmp_path: Path, module: str, line: str) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{line}\n")
    assert len(upward(path, tmp_path)) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        (
            "accounting/made_up.py",
            "from discreet.errors import UserError\nfrom discreet.accounting import events",
        ),
        (
            "cli/made_up.py",
            "from discreet import __version__\nfrom discreet.jobs.job import Job\nimport torch",
        ),
        ("plan.py", "from discreet.sampling import PoissonSampler"),
    ],
)
def test_an_import_that_leads_downwards_is_none_of_them(tmp_path: Path, module: str, line: str) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{line}\n")
    assert upward(path, tmp_path) == []
