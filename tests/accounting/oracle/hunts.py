"""The hunt: draw settings, ask the package for its bounds, and try to exceed them with explicit mechanisms.

The exact divergences are computed without asking the package for anything but the range of a gate's acceptance.
`Bounds` is the package seen from here; the twins of the tests override it to plant a fault, and the same mechanisms
must then find it. One case is one explicit mechanism at one order or epsilon, in one direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from adversaries import Metric, Setting, random_batch_toy, random_orthogonal, random_scored_toy, random_toy
from ascents import silent_train, worst_hidden, worst_hidden_profile, worst_visible, worst_visible_profile
from exact_batches import exact_scored_batch_rdp
from exact_choice import (
    ScoredGate,
    chosen_profile_from_below,
    exact_chosen_rdp,
    exact_scored_rdp,
    scored_profile_from_below,
)
from exact_quadrature import Array
from exact_trials import (
    Train,
    exact_hidden_profile,
    exact_hidden_rdp,
    exact_visible_profile,
    exact_visible_rdp,
    mixed_law,
    trial_law,
)

from discreet.accounting.budget import Accounting
from discreet.accounting.events import Event
from discreet.accounting.profiles import privacy_profile
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selective import same_batch
from discreet.accounting.selective.bound_a import reweighted_rdp, separate_steps_rdp
from discreet.accounting.selective.corners import acceptance_corners
from discreet.accounting.selective.events import (
    BatchGatedTrial,
    BufferedRelease,
    GatedTrial,
    ScoredTrial,
)
from discreet.accounting.selective.hidden import hidden_rdp
from discreet.accounting.selective.visible import exact_rdp, thinned_rdp

Pair = tuple[Array, Array]
Values = tuple[float, ...]


@dataclass(frozen=True)
class Exact:
    """The exact divergences (add, remove) of one explicit mechanism, and which claim of the package they test.

    `grid` has the orders or epsilons that the package is asked for at once, `at` is the place of this one.
    """

    claim: str
    event: Event
    grid: Values
    at: int
    values: Values
    where: str


@dataclass(frozen=True)
class Case:
    """An exact divergence beside the bound that should not be below it."""

    claim: str
    exact: float
    bound: float
    where: str

    @property
    def violated(self) -> bool:
        return not self.exact <= self.bound * (1 + 1e-9) + 1e-13


class Bounds:
    """What the package certifies for a claim: (record added, record removed) at every order or epsilon."""

    def of(self, claim: str, event: Event, grid: Array) -> Pair:
        if claim.endswith("-profile"):
            profile = privacy_profile(event, Accounting.VISIBLE if "visible" in claim else Accounting.HIDDEN)
            return profile.add(grid), profile.remove(grid)
        if isinstance(event, BatchGatedTrial):
            return self._batch(claim, event, grid)
        if isinstance(event, ScoredTrial | BufferedRelease):
            curve = rdp_curve(event, grid, Accounting.HIDDEN)
            return curve, curve
        assert isinstance(event, GatedTrial)
        if claim == "thinning":
            curve = thinned_rdp(event.law, event.acceptance, grid)
            return curve, curve
        if claim == "reweighting":
            return reweighted_rdp(event.law, event.acceptance, grid)
        if claim == "hidden-A":
            return separate_steps_rdp(event.law, event.acceptance, grid)
        corners = acceptance_corners(event.acceptance)
        return (hidden_rdp if claim == "hidden-B" else exact_rdp)(event.law, corners, grid)

    def _batch(self, claim: str, event: BatchGatedTrial, grid: Array) -> Pair:
        gate = event.gate
        if claim == "same-batch visible":
            curve = rdp_curve(event, grid, Accounting.VISIBLE)
            return curve, curve
        return same_batch.hidden_rdp(event.released_law, gate.low_ratio, gate.high_ratio, grid)


def judge(exacts: Iterable[Exact], bounds: Bounds) -> Iterator[Case]:
    """Every exact divergence beside its bound; the package is asked once per claim, event and grid."""
    asked: dict[tuple[str, Event, Values], Pair] = {}
    for exact in exacts:
        key = (exact.claim, exact.event, exact.grid)
        if key not in asked:
            asked[key] = bounds.of(exact.claim, exact.event, np.array(exact.grid))
        for side, direction in enumerate(("add", "remove")):
            bound = float(asked[key][side][exact.at])
            yield Case(exact.claim, exact.values[side], bound, f"{direction} {exact.event} {exact.where}")


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def random_gated(rng: np.random.Generator) -> GatedTrial:
    """Rates down to 1e-4 and up to 1, noise 0.3 to 20, thresholds from strict to lax; none that is refused."""
    while True:
        event = GatedTrial(
            sample_rate=1.0 if rng.random() < 0.05 else _log_uniform(rng, 1e-4, 1.0),
            noise_multiplier=_log_uniform(rng, 0.3, 20.0),
            gate_rate=float(rng.integers(0, 2)) if rng.random() < 0.1 else _log_uniform(rng, 1e-4, 1.0),
            gate_multiplier=_log_uniform(rng, 0.3, 5.0),
            gate_threshold=float(rng.uniform(-3, 2.5)),
        )
        if event.acceptance.moderate:
            return event


def random_orders(rng: np.random.Generator) -> Values:
    """A low, a middle and a high order."""
    high = rng.choice([16.0, 32.0, 64.0, 128.0, 512.0], p=[0.3, 0.3, 0.25, 0.1, 0.05])
    return float(rng.choice([1.1, 1.5, 2.0])), float(rng.uniform(2.1, 12.0)), float(high)


def setting_of(event: GatedTrial) -> Setting:
    return Setting(
        rate=event.sample_rate,
        sigma=event.noise_multiplier,
        gate_rate=event.gate_rate,
        a_min=event.gate.a_min,
        a_max=event.gate.a_max,
    )


def hunt_toys(rng: np.random.Generator, toys: int = 8) -> Iterator[Exact]:
    """Random toy data sets before a gate on an independent batch: Renyi divergences."""
    event, orders = random_gated(rng), random_orders(rng)
    for _ in range(toys):
        train, gate = random_toy(rng, setting_of(event))
        law = trial_law(train, gate, orders[-1])
        for at, order in enumerate(orders):
            hidden, visible = exact_hidden_rdp(law, order), exact_visible_rdp(law, order)
            for claim, values in (
                ("hidden-B", hidden),
                ("hidden-A", hidden),
                ("visible-rdp", visible),
                ("thinning", visible),
            ):
                yield Exact(claim, event, orders, at, values, f"order {order:g} {train} {gate}")


def hunt_by_ascent(rng: np.random.Generator) -> Iterator[Exact]:
    """The worst explicit gates that an ascent finds, at one order and in one direction each."""
    event, orders = random_gated(rng), random_orders(rng)
    setting, at, add = setting_of(event), int(rng.integers(3)), bool(rng.random() < 0.5)
    train, order = silent_train(setting), orders[at]
    for claim, same in (("hidden-B", False), ("reweighting", True)):
        parts = worst_hidden(setting, order, add=add, same=same)[1]
        law = mixed_law([(share, trial_law(train, gate, order)) for share, gate in parts])
        yield Exact(claim, event, orders, at, exact_hidden_rdp(law, order), f"ascent, order {order:g}")
    law = trial_law(train, worst_visible(setting, order, add=add)[1], order)
    yield Exact("visible-rdp", event, orders, at, exact_visible_rdp(law, order), f"ascent, order {order:g}")


def hunt_profiles(rng: np.random.Generator, toys: int = 3) -> Iterator[Exact]:
    """Hockey-stick divergences: random toys, and gates chosen for the epsilon."""
    event = random_gated(rng)
    setting, train = setting_of(event), silent_train(setting_of(event))
    epsilons = (0.0, _log_uniform(rng, 1e-3, 0.1), _log_uniform(rng, 0.1, 4.0))
    for at, epsilon in enumerate(epsilons):
        for _ in range(toys):
            toy = random_toy(rng, setting)
            where = f"epsilon {epsilon:g} {toy}"
            yield Exact("visible-profile", event, epsilons, at, exact_visible_profile(*toy, epsilon), where)
            yield Exact("hidden-profile", event, epsilons, at, exact_hidden_profile(*toy, epsilon), where)
        add, where = bool(rng.random() < 0.5), f"ascent, epsilon {epsilon:g}"
        for gate in worst_visible_profile(setting, epsilon, add=add):
            yield Exact(
                "visible-profile", event, epsilons, at, exact_visible_profile(train, gate, epsilon), where
            )
    at, add = int(rng.integers(3)), bool(rng.random() < 0.5)
    for gate in worst_hidden_profile(setting, epsilons[at], add=add):
        exact = exact_hidden_profile(train, gate, epsilons[at])
        yield Exact("hidden-profile", event, epsilons, at, exact, f"ascent, epsilon {epsilons[at]:g}")


def random_batch_gated(rng: np.random.Generator, *, scored: bool = False) -> BatchGatedTrial:
    while True:
        event = BatchGatedTrial(
            sample_rate=_log_uniform(rng, 1e-3, 1.0),
            noise_multiplier=_log_uniform(rng, 0.4, 12.0),
            gate_multiplier=_log_uniform(rng, 0.3, 4.0),
            gate_threshold=float(rng.uniform(-2, 1.5)),
            gate_span=1.0 if scored else float(rng.choice([1.0, 2.5])),
            one_sided=bool(rng.random() < 0.5) and not scored,
            private_reference=scored,
        )
        if event.gate.moderate:
            return event


def _public(event: BatchGatedTrial) -> tuple[float, float]:
    return event.sample_rate, event.noise_multiplier


def _metric(event: BatchGatedTrial) -> Metric:
    return Metric(
        sigma_v=event.gate_multiplier,
        threshold=event.gate_threshold,
        span=event.gate_span,
        one_sided=event.one_sided,
    )


def hunt_batches(rng: np.random.Generator, toys: int = 6) -> Iterator[Exact]:
    """Gates on the training batch: random toys, and classes of batches told apart by another direction."""
    event, orders = random_batch_gated(rng), random_orders(rng)
    (q, sigma), metric = _public(event), _metric(event)
    for _ in range(toys):
        train, gate = random_batch_toy(rng, q, sigma, metric)
        law = trial_law(train, gate, orders[-1])
        for at, order in enumerate(orders):
            where = f"order {order:g} {train} {gate}"
            yield Exact("same-batch hidden", event, orders, at, exact_hidden_rdp(law, order), where)
            yield Exact("same-batch visible", event, orders, at, exact_visible_rdp(law, order), where)
        told, at = random_orthogonal(rng, q, sigma, metric), int(rng.integers(2))
        order, where = orders[at], f"order {orders[at]:g} {told}"
        yield Exact("same-batch hidden", event, orders, at, told.exact_hidden_rdp(order), where)
        yield Exact("same-batch visible", event, orders, at, told.exact_visible_rdp(order), where)


def hunt_scored_batches(rng: np.random.Generator) -> Iterator[Exact]:
    """A gate on the training batch whose own score is released with the accepted candidate."""
    event, orders = random_batch_gated(rng, scored=True), random_orders(rng)
    metric = Metric(sigma_v=event.gate_multiplier, threshold=event.gate_threshold)
    without, with_extra = metric.random_pair(rng, 2)
    share = rng.random()
    for at, order in enumerate(orders[:2]):
        exact = exact_scored_batch_rdp(
            rate=event.sample_rate,
            sigma=event.noise_multiplier,
            sigma_v=event.gate_multiplier,
            beta=event.gate_threshold,
            log_probability=np.log([share, 1 - share]),
            without=without,
            with_extra=with_extra,
            order=order,
        )
        yield Exact("same-batch scored", event, orders, at, exact, f"order {order:g} {without} {with_extra}")


def random_choice(rng: np.random.Generator) -> tuple[ScoredTrial, BufferedRelease]:
    """The same public parameters for one scored candidate and for a choice between two."""
    gated = random_gated(rng)
    public = {
        "sample_rate": gated.sample_rate,
        "noise_multiplier": gated.noise_multiplier,
        "gate_rate": max(gated.gate_rate, 1e-4),
        "gate_multiplier": gated.gate_multiplier,
        "gate_threshold": min(gated.gate_threshold, 1.5),
    }
    return ScoredTrial(**public), BufferedRelease(**public, tie=float(rng.choice([0.0, 0.3, 1.0])))


def toy_of(rng: np.random.Generator, event: ScoredTrial) -> tuple[Train, ScoredGate]:
    return random_scored_toy(
        rng,
        event.sample_rate,
        event.noise_multiplier,
        event.gate_rate,
        event.gate_multiplier,
        event.gate_threshold,
    )


def hunt_choices(rng: np.random.Generator, toys: int = 6) -> Iterator[Exact]:
    """Two accepted candidates: released with scores, or only the chosen one. Renyi divergences."""
    (scored, chosen), orders = random_choice(rng), random_orders(rng)
    for _ in range(toys):
        train, gate = toy_of(rng, scored)
        for at, order in enumerate(orders[:2]):
            where = f"order {order:g} {train} {gate}"
            yield Exact("scored", scored, orders, at, exact_scored_rdp(train, gate, order), where)
            yield Exact("chosen", chosen, orders, at, exact_chosen_rdp(train, gate, order, chosen.tie), where)


def hunt_other_profiles(rng: np.random.Generator, toys: int = 3) -> Iterator[Exact]:
    """Hockey-stick divergences of scored and chosen candidates, and of gates on the training batch."""
    scored, chosen = random_choice(rng)
    batch = random_batch_gated(rng)
    epsilons = (0.0, _log_uniform(rng, 1e-3, 0.1), _log_uniform(rng, 0.1, 4.0))
    for _ in range(toys):
        toy, batch_toy = toy_of(rng, scored), random_batch_toy(rng, *_public(batch), _metric(batch))
        at = int(rng.integers(3))
        epsilon, where = epsilons[at], f"epsilon {epsilons[at]:g} {toy} {batch_toy}"
        for claim, event, exact in (
            ("scored visible-profile", scored, scored_profile_from_below(*toy, epsilon, visible=True)),
            ("scored hidden-profile", scored, scored_profile_from_below(*toy, epsilon, visible=False)),
            ("chosen hidden-profile", chosen, chosen_profile_from_below(*toy, epsilon, chosen.tie)),
            ("same-batch visible-profile", batch, exact_visible_profile(*batch_toy, epsilon)),
            ("same-batch hidden-profile", batch, exact_hidden_profile(*batch_toy, epsilon)),
        ):
            yield Exact(claim, event, epsilons, at, exact, where)


HUNTS: dict[str, Callable[[np.random.Generator], Iterator[Exact]]] = {
    "toys": hunt_toys,
    "ascents": hunt_by_ascent,
    "profiles": hunt_profiles,
    "batches": hunt_batches,
    "scored batches": hunt_scored_batches,
    "choices": hunt_choices,
    "other profiles": hunt_other_profiles,
}
