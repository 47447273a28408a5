"""The end of a run: the released model, the certificate, the pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from discreet.accounting.certificate import Certificate, TrainedOn
from discreet.accounting.certification import build_certificate
from discreet.accounting.log import read_log
from discreet.accounting.page import certificate_page
from discreet.accounting.rounding import rounded_up
from discreet.noise.key import RunKey
from discreet.training.files import read_json, write_text
from discreet.training.folder import RunFolder
from discreet.training.released import save_model
from discreet.training.run import Run

_SAMPLER = "Poisson: each record by its own coin of probability {rate:.6g}, afresh for every release"
_SECRET = (
    "Gaussian, from AES-256 in counter mode under a 256-bit key of the operating system; drawn in float64 by the "
    "Box-Muller transform"
)
_SEEDED = "Gaussian, from AES-256 in counter mode under a key made from the seed {seed}"
_NOT_FINITE = (
    "A record whose gradient is not finite contributes nothing; how many there were is told to nobody."
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """A private model and what it gives away.

    Attributes:
        model: the network with the released weights.
        certificate: what is guaranteed.
        folder: where the run lies; None for a run that lived in memory.
    """

    model: nn.Module
    certificate: Certificate
    folder: Path | None

    def sentence(self) -> str:
        """The result in a sentence or two."""
        made, planned = self.certificate.releases_executed, self.certificate.releases_planned
        certified = (
            f"epsilon {rounded_up(self.certificate.epsilon)} at delta {self.certificate.budget_delta:g}"
        )
        if not self.certificate.guarantee:
            return f"{made} releases, seeded: NO guarantee. With a secret key it would be {certified} (certified)."
        if self.certificate.ended_early:
            return (
                f"Ended after {made} of {planned} releases. Certified: {certified}, that of the whole plan; "
                f"{rounded_up(self.certificate.epsilon_of_what_ran)} if the end was chosen without a look at the model."
            )
        return f"{made} releases. Certified: {certified}."


def conclude(run: Run) -> Result:
    """End a run: put the released weights into the model, certify them, and write everything down.

    The key is deleted when the plan is complete; a run that ended early keeps it in its private folder, so that it
    can be taken up again.
    """
    if run.folder is not None:
        run.save()
    run.close()
    certificate = certify(run)
    if run.folder is not None:
        _write(run, run.folder, certificate)
        if run.finished:
            run.folder.key.unlink(missing_ok=True)
    return Result(
        model=run.model, certificate=certificate, folder=None if run.folder is None else run.folder.path
    )


def certify(run: Run) -> Certificate:
    """The certificate of a run as it stands."""
    plan, form = run.plan, run.data.description
    history = run.filter.history if run.folder is None else read_log(run.folder.path)
    # Without a gate every release is an update, and both accountings see the same. With one, the run was made for the
    # accounting that it was held to, and ended accordingly: the other one would say nothing true of it.
    charges = plan.charges() if plan.selecting is None else None
    return build_certificate(
        history,
        recipe=plan.recipe,
        settings=plan.to_json(),
        trained_on=TrainedOn(
            name=form.name,
            records=plan.sampler.examples,
            records_public=form.size_is_public,
            schema_hash=form.schema_hash,
        ),
        sampler=_SAMPLER.format(rate=plan.sampler.rate),
        noise_source=_noise_source(run.key),
        executed=run.state.releases,
        claimed_epsilon=run.claimed_epsilon(),
        charges_visible=charges,
        charges_hidden=charges,
        assumptions=(
            *(
                f"Taken from the records without noise and not charged: {fact}."
                for fact in form.private_facts
            ),
            *_size_assumption(form.size_is_public),
            _NOT_FINITE,
        ),
    )


def _size_assumption(size_is_public: bool) -> tuple[str, ...]:
    if size_is_public:
        return ("The number of records is public.",)
    return (
        "The number of records is treated as public (it sets the sample rate and stands in this certificate), though "
        "nobody has declared it to be.",
    )


def _noise_source(key: RunKey) -> str:
    return _SECRET if key.is_secret else _SEEDED.format(seed=key.seed)


def _write(run: Run, folder: RunFolder, certificate: Certificate) -> None:
    save_model(folder.model, run.model, facts=_model_facts(folder, certificate))
    write_text(folder.certificate, certificate.to_json())
    write_text(folder.certificate_page, certificate_page(certificate))


def _model_facts(folder: RunFolder, certificate: Certificate) -> dict[str, Any]:
    return {
        "model": read_json(folder.settings)["notes"].get("model"),
        "epsilon": certificate.epsilon,
        "delta": certificate.budget_delta,
        "guarantee": certificate.guarantee,
    }
