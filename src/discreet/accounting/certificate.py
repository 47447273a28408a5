"""The certificate of a run: what is promised, on what assumptions, and all that it takes to recompute it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from discreet.errors import CorruptFile

CERTIFICATE_NAME = "certificate.json"
CERTIFICATE_SCHEMA = 1

NEIGHBOURS = (
    "Two data sets are neighbours if one has exactly one record more than the other (add or remove one)."
)
THREAT_MODEL = (
    "The adversary may know every other record, sees everything that was released, and has unlimited time.",
    "The adversary does not see the noise, the sampled batches, the secret key, gradients or losses in memory.",
    "How long a step takes depends on the size of the batch; someone who can time single steps is not covered.",
    "Noise is computed in floating point and added to floating-point sums. The analysis is that of real numbers; "
    "attacks on the lowest bits of a release are not covered.",
)
ASSUMPTIONS = (
    "Each record belongs to one person; a person with several records has the guarantee for a group of that size.",
    "The settings of the run were not chosen by looking at these records, or that was accounted elsewhere.",
    "Other releases about the same people add up with this one; they are not counted here.",
)
SECRET_TRIALS = "How many trials were made, and when, stays secret: only the accepted models are seen."
SEEDED = "The noise comes from a fixed seed: whoever knows the seed can take the noise away again."
STOPPING = (
    "It holds only if the decision to stop early did not depend on the data, on released models included."
)


@dataclass(frozen=True, kw_only=True)
class TrainedOn:
    """What a run was trained on. The records themselves leave no trace here.

    Attributes:
        name: The name of the data set.
        records: The number of records.
        records_public: Whether that number is declared to be public.
        schema_hash: A hash of the shape and types of a record, not of the data.
    """

    name: str
    records: int
    records_public: bool
    schema_hash: str = ""


@dataclass(frozen=True, kw_only=True)
class EpsilonAt:
    """The certified epsilon at one delta: `None` stands for "no finite one"."""

    delta: float
    epsilon: float | None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Everything about the privacy of one run, in numbers and in words. See `certification`."""

    schema: int = CERTIFICATE_SCHEMA
    library: str
    recipe: str
    settings: Mapping[str, Any]
    trained_on: TrainedOn
    guarantee: bool
    why_no_guarantee: str
    neighbours: str = NEIGHBOURS
    sampler: str
    noise_source: str
    threat_model: Sequence[str] = THREAT_MODEL
    assumptions: Sequence[str] = ASSUMPTIONS
    accounting: str
    calculus: str
    filter: str
    budget_epsilon: float
    budget_delta: float
    epsilon: float | None
    epsilons: Sequence[EpsilonAt]
    epsilon_of_what_ran: float | None
    epsilon_of_what_ran_needs: str = STOPPING
    epsilon_claimed: float | None
    epsilon_visible: float | None
    epsilon_hidden: float | None
    releases_planned: int | None
    releases_charged: int
    releases_executed: int
    ended_early: bool
    planned: Sequence[Mapping[str, Any]]
    charged: Sequence[Mapping[str, Any]]
    charges_visible: Sequence[Mapping[str, Any]] | None = None
    charges_hidden: Sequence[Mapping[str, Any]] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The certificate as JSON text."""
        return json.dumps(asdict(self), indent=2, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """The certificate that `to_json` wrote; foreign schemas and fields are refused."""
        try:
            record = json.loads(text)
            if record["schema"] != CERTIFICATE_SCHEMA:
                raise ValueError(f"schema {record['schema']!r} is not the known {CERTIFICATE_SCHEMA}")
            values: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
            }
            values["trained_on"] = TrainedOn(**record["trained_on"])
            values["epsilons"] = tuple(EpsilonAt(**each) for each in record["epsilons"])
            return cls(**values)
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(f"this is not a certificate that can be read: {error}") from error

    def save(self, folder: Path | str) -> Path:
        """Write the certificate into the folder of its run."""
        path = Path(folder) / CERTIFICATE_NAME
        path.write_text(self.to_json(), encoding="utf-8")
        return path
