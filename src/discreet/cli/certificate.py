"""`discreet certificate`: recompute what a run guarantees, from its event log."""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

from discreet.accounting.certificate import CERTIFICATE_NAME, Certificate
from discreet.accounting.certification import verify_certificate
from discreet.accounting.rounding import rounded_up
from discreet.errors import CorruptFile, UserError

_WIDTH = 80
_LONGEST_DIFFERENCE = 300


def certificate(arguments: argparse.Namespace) -> int:
    """Recompute a certificate and compare; exit code 1 where it does not say what the log says."""
    path = arguments.folder / CERTIFICATE_NAME
    try:
        differences = verify_certificate(arguments.folder)
        text = path.read_text(encoding="utf-8")
        found = Certificate.from_json(text)
    except CorruptFile as error:
        raise CorruptFile(f"{arguments.folder}: {error}") from None
    except UserError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        # A certificate is foreign text: whatever stands in it, a person gets an answer.
        raise CorruptFile(f"{path} is not a certificate that can be read: {error}") from None
    if arguments.json:
        sys.stdout.write(text)
    else:
        print(_summary(found))
    for difference in differences:
        print(f"DIFFERENT  {textwrap.shorten(difference, _LONGEST_DIFFERENCE)}", file=sys.stderr)
    if differences:
        print("The certificate does not follow from the event log. Do not rely on it.", file=sys.stderr)
        return 1
    if not arguments.json:
        print("Recomputed from the event log: every number agrees.")
        if arguments.copies is not None:
            print(_of_copies(arguments.folder, arguments.copies))
    return 0


def _of_copies(folder: Path, copies: int) -> str:
    """What is left of the guarantee for a record that occurs several times."""
    if copies < 1:
        raise UserError(f"copies is {copies}; a record occurs at least once")
    from discreet.accounting.copies import epsilon_of_copies
    from discreet.accounting.log import read_log

    header = read_log(folder).header
    found = epsilon_of_copies(header, copies)
    told = (
        f"A record that occurs {copies} times, or {copies} records of one person, are protected as a group: epsilon "
        f"{rounded_up(found)} at delta {header.budget.delta:.3g} for all of them together."
    )
    return textwrap.fill(told, _WIDTH)


def _summary(certificate: Certificate) -> str:
    on = certificate.trained_on
    planned = "" if certificate.releases_planned is None else f" of {certificate.releases_planned} planned"
    lines = [f"{certificate.recipe} on {on.name}, by {certificate.library}"]
    if not certificate.guarantee:
        lines.append(f"NO GUARANTEE. {certificate.why_no_guarantee}")
    lines += [
        f"  epsilon {rounded_up(each.epsilon)} at delta {each.delta:.3g}"
        + (f" ({each.why})" if each.why else "")
        for each in certificate.epsilons
    ]
    lines += [
        f"  neighbours: {certificate.neighbours}",
        f"  accounting: {certificate.accounting}; releases made: {certificate.releases_executed}{planned}",
    ]
    if certificate.ended_early:
        lines.append(
            f"  what ran: epsilon {rounded_up(certificate.epsilon_of_what_ran)}. "
            f"{certificate.epsilon_of_what_ran_needs}"
        )
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="    ") for line in lines)
