"""One page about one run."""

from __future__ import annotations

from discreet.report import course, guarantee
from discreet.report.document import document
from discreet.report.material import Files, Material
from discreet.report.memory import memory
from discreet.report.selection import selection


def run_page(files: Files) -> str:
    """What was done, what is guaranteed, what it cost and what it reached.

    Guarantee: the page is made from the public files of the run's folder: settings, charges, the certificate,
    and accuracy on records that are not protected. The private folder is not opened.
    """
    material = Material.of(files)
    return document(
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
        title=material.title,
        kicker="Report of a private training run",
        verdict=guarantee.verdict(material),
        made=f"Made by {material.certificate.library} from the public files of the run. Nothing on this page was "
        "computed from private records without noise.",
    )
