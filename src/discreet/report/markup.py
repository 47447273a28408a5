"""HTML that cannot be broken by what it shows: everything is escaped unless it was made here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Content: TypeAlias = "str | float | Sequence[Content] | None"

_VOID = frozenset({"meta"})


def markup(content: Content) -> Html:
    """The content as markup: plain text is escaped, lists are joined, nothing is nothing."""
    if content is None:
        return Html()
    if isinstance(content, Html):
        return content
    if isinstance(content, str | float | int):
        return Html(escape(str(content), quote=True))
    return Html("".join(markup(part) for part in content))


def element(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Html:
    """An element. Attributes are named as in Python: `class_` is class, `aria_label` is aria-label.

    An attribute that is None or False is left out; one that is True stands without a value.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        written.append(f" {label}" if value is True else f' {label}="{escape(str(value), quote=True)}"')
    opening = f"<{name}{''.join(written)}>"
    return Html(opening if name in _VOID else f"{opening}{markup(list(content))}</{name}>")


def paragraph(*content: Content) -> Html:
    """A paragraph."""
    return element("p", *content)


def section(heading: str, *content: Content) -> Html:
    """A part of a page under a heading."""
    name = heading.lower().replace(" ", "-")
    return element("section", element("h2", heading, id=name), list(content), aria_labelledby=name)


def code(text: str) -> Html:
    """A name or a line of code inside a sentence."""
    return element("code", text)


def table(
    headings: list[Content],
    rows: list[list[Content]],
    *,
    caption: Content,
    numeric: bool = False,
    class_: str | None = None,
) -> Html:
    """A table whose first column names its rows, in a frame that scrolls where the screen is narrow."""
    head = element("thead", element("tr", [element("th", each, scope="col") for each in headings]))
    body = element(
        "tbody",
        [
            element("tr", element("th", first, scope="row"), [element("td", each) for each in rest])
            for first, *rest in rows
        ],
    )
    kind = " ".join(filter(None, (class_, "numbers" if numeric else None))) or None
    whole = element("table", element("caption", caption), head, body, class_=kind)
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=str(caption))
