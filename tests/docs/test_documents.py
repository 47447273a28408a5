import re
from dataclasses import fields
from pathlib import Path

import pytest

from discreet.models.registry import names, options_of
from discreet.recipes import RECIPES
from discreet.schedules import Schedule

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def anchors(page: Path) -> set[str]:
    """The names by which one can link to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[tuple[str, str]]:
    """Target and anchor of each link of a page to another page here."""
    found = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text())
    return [(target, anchor) for target, anchor in found if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_pages_and_headings_that_are_there(page: Path) -> None:
    for target, anchor in links(page):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(file), f"{file.name} has no heading #{anchor}"


def test_a_link_that_leads_nowhere_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[two](#two)\n")
    assert links(page) == [("", "two")]
    assert "two" not in anchors(page)


def settings(page: str) -> dict[str, list[str]]:
    """The cells beside each setting in the tables of a page."""
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", page, flags=re.MULTILINE)
    return {name: [cell.strip(' `"') for cell in rest.split("|")] for name, rest in rows}


def says(cells: list[str], value: object) -> bool:
    """Whether one of the cells is that value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value in [float(cell) for cell in cells if re.fullmatch(r"[\d.e-]+", cell)]
    return str(value) in cells


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_has_a_page_that_names_its_settings_and_their_defaults(name: str) -> None:
    page = (ROOT / "docs" / "recipes" / f"{name}.md").read_text()
    for field in fields(RECIPES[name]):
        assert f"`{field.name}`" in page, f"{field.name} is not documented"
    for setting, cells in settings(page).items():
        value = getattr(RECIPES[name](), setting)
        if value is not None and not isinstance(value, Schedule):
            assert says(cells, value), f"{setting} is {value}, and not as in {cells}"


def test_a_default_that_is_not_as_on_the_page_would_be_noticed() -> None:
    cells = settings((ROOT / "docs" / "recipes" / "dp-sgd.md").read_text())["clip_norm"]
    assert says(cells, 1.0)
    assert not says(cells, 0.1)


def test_every_recipe_page_is_of_a_recipe() -> None:
    assert {page.stem for page in (ROOT / "docs" / "recipes").glob("*.md")} == set(RECIPES)


def test_the_guide_names_every_network_and_its_options() -> None:
    guide = (ROOT / "docs" / "guide.md").read_text()
    for name in names():
        row = next(line for line in guide.splitlines() if line.startswith("|") and f"`{name}`" in line)
        for option, default in options_of(name).items():
            assert f"`{option}={default}`" in row, f"{name} has the option {option}={default}"
