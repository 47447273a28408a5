"""Every kind of event in one run: composed in one calculus, filtered, logged, certified, recomputed."""

import json

import numpy as np
import pytest

from discreet.accounting import (
    Accounting,
    Budget,
    ChargePlan,
    EventLog,
    Gaussian,
    LogHeader,
    PoissonGaussian,
    PoissonPureDP,
    PureDP,
    build_certificate,
    certificate_page,
    epsilon,
    event_from_json,
    open_filter,
    read_log,
    verify_certificate,
)
from discreet.accounting.certificate import TrainedOn
from discreet.accounting.composition import composed_rdp
from discreet.accounting.rdp import ORDERS, certified_rdp, epsilon_from_rdp
from discreet.accounting.selective import (
    AnnealedTrial,
    BatchGatedTrial,
    BufferedRelease,
    GatedTrial,
    ScoredTrial,
)
from discreet.errors import BudgetExhausted

TRAIN = {"sample_rate": 0.02, "noise_multiplier": 3.0}
GATE = {"gate_rate": 0.004, "gate_multiplier": 1.3}
BOTH = [
    PoissonGaussian(**TRAIN),
    Gaussian(noise_multiplier=12.0),
    PureDP(epsilon=0.05),
    PoissonPureDP(sample_rate=0.02, epsilon=0.3),
    GatedTrial(**TRAIN, **GATE, gate_threshold=-1.0),
    ScoredTrial(**TRAIN, **GATE, gate_threshold=-1.0),
    AnnealedTrial(**TRAIN, **GATE, coldness=2.0),
    BatchGatedTrial(**TRAIN, gate_multiplier=1.3, gate_threshold=-0.5),
    BatchGatedTrial(**TRAIN, gate_multiplier=1.3, gate_threshold=-0.5, one_sided=True),
    BatchGatedTrial(**TRAIN, gate_multiplier=1.3, gate_threshold=-0.5, private_reference=True),
]
EVENTS = {
    "visible": BOTH,
    "hidden": [
        *BOTH,
        BufferedRelease(**TRAIN, **GATE, gate_threshold=-1.0, candidates=2),
        BufferedRelease(**TRAIN, **GATE, gate_threshold=-1.0, candidates=3, charge_all=True),
    ],
}
DELTA = 1e-5


def charges(accounting):
    return [(event, 3 + number) for number, event in enumerate(EVENTS[accounting])]


@pytest.mark.parametrize("accounting", EVENTS)
def test_renyi_divergences_of_all_kinds_add(accounting):
    total = sum(
        count * certified_rdp(event, ORDERS, Accounting(accounting)) for event, count in charges(accounting)
    )
    np.testing.assert_allclose(composed_rdp(charges(accounting), accounting=accounting), total, rtol=1e-12)
    assert epsilon(charges(accounting), DELTA, accounting=accounting, calculus="rdp") == pytest.approx(
        epsilon_from_rdp(total, DELTA), rel=1e-12
    )


@pytest.mark.parametrize("accounting", EVENTS)
def test_losses_of_all_kinds_compose_and_never_mix_with_the_other_calculus(accounting):
    figures = {
        calculus: epsilon(charges(accounting), DELTA, accounting=accounting, calculus=calculus)
        for calculus in ("rdp", "pld", "best")
    }
    assert 0 < figures["pld"] < np.inf
    assert figures["best"] == min(figures["rdp"], figures["pld"])
    alone = max(
        epsilon([charge], DELTA, accounting=accounting, calculus="pld") for charge in charges(accounting)
    )
    assert figures["pld"] > alone


@pytest.mark.parametrize("accounting", EVENTS)
def test_a_planned_run_of_all_kinds_is_certified_and_recomputed(accounting, tmp_path):
    planned = ChargePlan(releases=tuple(charges(accounting)))
    cost = epsilon(planned.charges(), DELTA, accounting=accounting)
    header = LogHeader(
        budget=Budget(epsilon=1.01 * cost, delta=DELTA),
        accounting=Accounting(accounting),
        secure_noise=True,
        plan=planned,
    )
    with EventLog.create(tmp_path, header) as log:
        guard, number = open_filter(header, log), 0
        for event, count in planned.releases:
            guard.charge(number, event, count)
            number += count
        with pytest.raises(BudgetExhausted):
            guard.charge(number, event)
    certificate = build_certificate(
        read_log(tmp_path),
        recipe="everything",
        settings={},
        trained_on=TrainedOn(name="records", records=1000, records_public=True),
        sampler="Poisson",
        noise_source="a test",
    )
    certificate.save(tmp_path)
    assert certificate.epsilon == pytest.approx(cost)
    assert verify_certificate(tmp_path) == []
    assert all(event.kind in certificate_page(certificate) for event, _ in planned.releases)

    forged = json.loads((tmp_path / "certificate.json").read_text())
    forged["epsilon"] *= 0.9
    (tmp_path / "certificate.json").write_text(json.dumps(forged))
    assert any(difference.startswith("epsilon") for difference in verify_certificate(tmp_path))


@pytest.mark.parametrize("accounting", EVENTS)
def test_a_filter_lets_kinds_and_parameters_change_until_the_curve_is_used_up(accounting, tmp_path):
    """The plan gives the curve; what is charged is chosen as one goes, and never exceeds it at any order."""
    planned = ChargePlan(releases=((EVENTS[accounting][0], 400),))
    spent = epsilon_from_rdp(composed_rdp(planned.charges(), accounting=accounting), DELTA)
    header = LogHeader(
        budget=Budget(epsilon=1.01 * spent, delta=DELTA),
        accounting=Accounting(accounting),
        secure_noise=True,
        calculus="rdp",
        filter="renyi-curve",
        plan=planned,
    )
    made = []
    with EventLog.create(tmp_path, header) as log:
        guard, refused = open_filter(header, log), False
        for number in range(5000):
            event = GatedTrial(
                sample_rate=0.02,
                noise_multiplier=3.0 + 0.5 * (number % 5),
                **GATE,
                gate_threshold=-1.0 - 0.1 * (number % 3),
            )
            try:
                guard.charge(number, event)
            except BudgetExhausted:
                refused = True
                break
            made.append((event, 1))
    assert refused
    assert len(made) > 50
    assert read_log(tmp_path).charges() == made
    assert (
        composed_rdp(made, accounting=accounting)
        <= composed_rdp(planned.charges(), accounting=accounting) * (1 + 1e-9)
    ).all()
    assert epsilon(made, DELTA, accounting=accounting, calculus="rdp") <= 1.01 * spent


@pytest.mark.parametrize("event", EVENTS["hidden"], ids=lambda event: event.kind)
def test_every_kind_is_written_down_to_the_last_bit(event):
    assert event_from_json(json.loads(json.dumps(event.to_json()))) == event
