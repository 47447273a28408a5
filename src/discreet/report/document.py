"""One HTML document that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files as resources

from discreet.report.markup import Content, Html, element, markup, paragraph


def document(*parts: Content, title: str, kicker: str, verdict: Content, made: str) -> str:
    """A page in the style of the reports.

    Args:
        parts: what stands in the middle.
        title: what it is about.
        kicker: what kind of page it is.
        verdict: what has to be seen first.
        made: how the page was made, for the foot.
    """
    style, script = _resource("page.css"), _resource("page.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        # Nothing is fetched, and no script runs but this page's own, whatever a name in the data contains.
        element(
            "meta",
            http_equiv="Content-Security-Policy",
            content=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'",
        ),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} - discreet"),
        element("style", style),
    )
    body = element(
        "body",
        element("a", "To the content", class_="skip", href="#main"),
        element("header", paragraph(element("span", kicker, class_="kicker")), element("h1", title), verdict),
        element("main", list(parts), id="main"),
        element("footer", paragraph(made)),
        element("script", script),
    )
    return f"<!doctype html>\n{markup(element('html', head, body, lang='en'))}\n"


def _resource(name: str) -> Html:
    text = (resources("discreet.report") / name).read_text(encoding="utf-8")
    assert "</" not in text, f"{name} would end its element early"
    return Html(text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
