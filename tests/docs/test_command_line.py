import argparse
import re
from pathlib import Path

import pytest

from discreet.cli.main import parser

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def commands(top: argparse.ArgumentParser, name: str) -> dict[str, argparse.ArgumentParser]:
    """All commands that do something, by what one types."""
    below = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        return {name: top}
    return {
        full: found
        for action in below
        for word, command in action.choices.items()
        for full, found in commands(command, f"{name} {word}").items()
    }


COMMANDS = commands(parser(), "discreet")


def parts(page: str) -> dict[str, str]:
    """The text under each command's heading."""
    headings = re.split(r"^## `(.+)`$", page, flags=re.MULTILINE)
    return dict(zip(headings[1::2], headings[2::2], strict=True))


def documented(part: str) -> set[str]:
    """The first words of the rows of a part's tables."""
    return {cell.split()[0] for cell in re.findall(r"^\| `(.+?)` \|", part, flags=re.MULTILINE)}


def accepted(command: argparse.ArgumentParser) -> set[str]:
    """What a command takes."""
    actions = [action for action in command._actions if not isinstance(action, argparse._HelpAction)]
    return {
        action.option_strings[0] if action.option_strings else action.metavar or action.dest
        for action in actions
    }


def test_the_page_has_a_part_for_each_command_and_no_other() -> None:
    assert parts(PAGE.read_text()).keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_is_documented_and_no_other(name: str) -> None:
    assert documented(parts(PAGE.read_text())[name]) == accepted(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_choice_is_named(name: str) -> None:
    part = parts(PAGE.read_text())[name]
    for action in COMMANDS[name]._actions:
        for choice in action.choices or ():
            assert f"`{choice}`" in part, f"{action.option_strings} can be {choice}"


def test_an_option_that_is_missing_from_the_page_would_be_noticed() -> None:
    part = parts(PAGE.read_text())["discreet account"]
    assert documented(part.replace("--json", "--yaml")) != accepted(COMMANDS["discreet account"])
