"""One page about one run: what was done, what is guaranteed, what it cost and what it reached."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files as resources

from discreet.report import sections
from discreet.report.markup import Html, element, markup
from discreet.report.material import Files, Material


def run_page(files: Files) -> str:
    """The page as one HTML document that needs nothing else: no network, no other file.

    Guarantee: the page is made from the public files of the run's folder: settings, charges, the certificate,
    and accuracy on records that are not protected. The private folder is not opened.
    """
    material = Material.of(files)
    title = sections.title(material)
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
        element(
            "header",
            element("p", "Report of a private training run", class_="kicker"),
            element("h1", title),
            sections.verdict(material),
        ),
        element("main", [part(material) for part in sections.PARTS], id="main"),
        sections.footer(material),
        element("script", script),
    )
    return f"<!doctype html>\n{markup(element('html', head, body, lang='en'))}\n"


def _resource(name: str) -> Html:
    text = (resources("discreet.report") / name).read_text(encoding="utf-8")
    assert "</" not in text, f"{name} would end its element early"
    return Html(text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
