"""`discreet certificate`: recompute what a run guarantees, from its event log."""

from __future__ import annotations

import argparse
import sys

from discreet.accounting.certificate import Certificate
from discreet.accounting.certification import verify_certificate


def certificate(arguments: argparse.Namespace) -> int:
    """Recompute a certificate and compare; exit code 1 where it does not say what the log says."""
    differences = verify_certificate(arguments.folder)
    text = (arguments.folder / "certificate.json").read_text(encoding="utf-8")
    if arguments.json:
        sys.stdout.write(text)
    else:
        print(_summary(Certificate.from_json(text)))
    for difference in differences:
        print(f"DIFFERENT  {difference}", file=sys.stderr)
    if differences:
        print("The certificate does not follow from the event log. Do not rely on it.", file=sys.stderr)
        return 1
    if not arguments.json:
        print("Recomputed from the event log: every number agrees.")
    return 0


def _summary(certificate: Certificate) -> str:
    from discreet.accounting.rounding import rounded_up

    on = certificate.trained_on
    lines = [f"{certificate.recipe} on {on.name}, by {certificate.library}"]
    if not certificate.guarantee:
        lines.append(f"NO GUARANTEE. {certificate.why_no_guarantee}")
    for each in certificate.epsilons:
        lines.append(f"  epsilon {rounded_up(each.epsilon)} at delta {each.delta:.3g}  {each.why}".rstrip())
    lines.append(f"  neighbours: {certificate.neighbours}")
    lines.append(
        f"  accounting: {certificate.accounting}; releases made: {certificate.releases_executed}"
        + (f" of {certificate.releases_planned} planned" if certificate.releases_planned is not None else "")
    )
    if certificate.ended_early:
        lines.append(
            f"  what ran: epsilon {rounded_up(certificate.epsilon_of_what_ran)}. "
            f"{certificate.epsilon_of_what_ran_needs}"
        )
    return "\n".join(lines)
