"""One page about one run."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files as resources

from discreet.report import course, guarantee
from discreet.report.markup import Content, Html, element, markup, paragraph
from discreet.report.material import Files, Material
from discreet.report.memory import memory
from discreet.report.selection import selection


def run_page(files: Files) -> str:
    """What was done, what is guaranteed, what it cost and what it reached.

    Guarantee: the page is made from the public files of the run's folder: settings, charges, the certificate,
    and accuracy on records that are not protected. The private folder is not opened.
    """
    material = Material.of(files)
    return _document(
        material,
        course.done(material),
        guarantee.meaning(material),
        course.course(material),
        selection(material),
        memory(material),
        guarantee.accountings(material),
        guarantee.grounds(material),
        course.giving_away(material),
        course.repeating(material),
        course.settings(material),
    )


def _document(material: Material, *parts: Content) -> str:
    """One HTML document that needs nothing else: no network, no other file."""
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
        element("title", f"{material.title} - discreet"),
        element("style", style),
    )
    body = element(
        "body",
        element("a", "To the content", class_="skip", href="#main"),
        element(
            "header",
            paragraph(element("span", "Report of a private training run", class_="kicker")),
            element("h1", material.title),
            guarantee.verdict(material),
        ),
        element("main", list(parts), id="main"),
        element(
            "footer",
            paragraph(
                f"Made by {material.certificate.library} from the public files of the run. Nothing on this "
                "page was computed from private records without noise."
            ),
        ),
        element("script", script),
    )
    return f"<!doctype html>\n{markup(element('html', head, body, lang='en'))}\n"


def _resource(name: str) -> Html:
    text = (resources("discreet.report") / name).read_text(encoding="utf-8")
    assert "</" not in text, f"{name} would end its element early"
    return Html(text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
