import json
import math
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn

from discreet import conclude, start
from discreet.accounting import Accounting, Budget
from discreet.accounting.selective.claimed import WHOLE_ORDERS, claimed_epsilon
from discreet.data import Records
from discreet.errors import TrialsExhausted, UserError
from discreet.gates.gate import Verdict
from discreet.gates.scores import LossChange
from discreet.recipes import DPSGDBR, DPSRCG, DPSUR
from discreet.training.fit import drive
from discreet.training.undo import Undo

EXAMPLES = 90
ROOMY = Budget(epsilon=500.0, delta=1e-3)
SIZES = {
    "expected_batch_size": 30,
    "releases": 40,
    "noise_multiplier": 1.0,
    "gate_batch_size": 30,
    "gate_clip": 0.01,
    "learning_rate": 0.3,
    "momentum": 0.7,
}


def with_verdicts(gate, judge):
    """The gate of a plan, all but its judgement."""
    kind = type("Staged", (type(gate),), {"judge": judge})
    return kind(**{field.name: getattr(gate, field.name) for field in fields(gate)})


def scripted(gate, scores):
    """Gives these verdicts: a score to accept with, None to reject."""

    def judge(self, trial):
        score = scores[min(trial.number, len(scores) - 1)]
        trial.propose()
        return Verdict(accepted=score is not None, score=0.0 if score is None else score)

    return with_verdicts(gate, judge)


def patient(gate, rejections):
    """Rejects every candidate so many times before it accepts one."""

    def judge(self, trial):
        trial.propose()
        return Verdict(accepted=trial.rejected_in_a_row >= rejections, score=0.0)

    return with_verdicts(gate, judge)


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(0)
    return Records.from_arrays(
        torch.randn(EXAMPLES, 3, generator=generator), torch.arange(EXAMPLES) % 2, classes=2
    )


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def begin(data, recipe, *, script=None, seed=3, **options):
    plan = recipe.plan(EXAMPLES, ROOMY, accounting=options.pop("accounting", Accounting.VISIBLE))
    if script is not None:
        gate = scripted(plan.selecting.gate, tuple(script))
        plan = replace(plan, selecting=replace(plan.selecting, gate=gate))
    return start(network(), data, plan, seed=seed, **options)


def state_of(run):
    """All that may not change when a candidate is rejected, as bytes."""
    state = run.state
    optimizer = [
        (name, value.numpy().tobytes() if torch.is_tensor(value) else value)
        for entries in state.optimizer.state.values()
        for name, value in sorted(entries.items())
    ]
    average = None if state.average is None else state.average.numpy().tobytes()
    selection = state.selection
    return (
        state.parameters.numpy().tobytes(),
        optimizer,
        average,
        selection.reference,
        list(selection.scores),
        selection.waiting[: len(selection.scores)].numpy().tobytes(),
        selection.phase,
        state.updates,
    )


# A rejected trial leaves no trace.

KINDS = {
    "sgd": DPSUR(**SIZES),
    "adam": DPSUR(**{**SIZES, "learning_rate": 0.02}, torch_optimizer="Adam", average=0.9),
    "buffered": DPSGDBR(**SIZES, progress="none", patience=None),
    "bias": DPSRCG(**{name: value for name, value in SIZES.items() if "gate" not in name}),
}


def leaves_no_trace(data, recipe) -> bool:
    """Accept two, reject three: is everything as before the three, to the last bit?"""
    run = begin(data, recipe, script=[-1.0, -2.0, None, None, None])
    for _ in range(2):
        run.release()
    before = state_of(run)
    for _ in range(3):
        assert not run.release().updated
    return state_of(run) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_rejected_trial_leaves_no_trace_in_any_state(data, kind):
    assert leaves_no_trace(data, KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_not_taken_back_would_be_noticed(data, kind, monkeypatch):
    monkeypatch.setattr(Undo, "back", lambda self: None)
    assert not leaves_no_trace(data, KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_momentum_that_remembers_a_rejected_candidate_would_be_noticed(data, kind, monkeypatch):
    monkeypatch.setattr(Undo, "back", lambda self: self._parameters.copy_(self._kept))
    assert not leaves_no_trace(data, KINDS[kind])


def test_a_gate_that_rejects_at_random_leaves_the_updates_of_the_accepted_alone(data):
    """The weights after the run are those of the accepted gradients, replayed without the rejected ones."""
    run = begin(data, DPSUR(**SIZES))
    kept = []
    for _ in range(20):
        if run.release().updated:
            kept.append(run.state.gradient.clone())
    assert 3 < len(kept) < 18
    other = begin(data, DPSUR(**SIZES))
    for gradient in kept:
        other.state.gradient.copy_(gradient)
        other.propose(0)
    assert other.state.parameters.equal(run.state.parameters)


# What is released has the law that the theory says.

RECORDS = torch.tensor([[1.0], [-0.4], [0.7]])
SLOPES = torch.tensor([0.02, -0.05, 0.01])
STEP, SIGMA, SIGMA_V, BETA, CLIP, CLIP_V = 0.8, 1.3, 0.9, -0.5, 0.5, 0.02
HALF = 0.5


class OneWeight(nn.Module):
    """w times the record."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 1))

    def forward(self, inputs):
        return inputs @ self.weight


def linear_loss(outputs, targets):
    """The record's slope in w is its input; the target's place picks a curvature that only the gate sees."""
    return outputs[:, 0] + 4.0 * SLOPES[targets] * outputs[:, 0] ** 2


def batches():
    return list(product((False, True), repeat=len(RECORDS)))


def theory():
    """The law of an accepted weight as (its distribution function, the probability to be accepted)."""
    gradients = RECORDS[:, 0].clamp(-CLIP, CLIP).double().numpy()  # at w = 0 the slope is the input
    inputs, slopes = RECORDS[:, 0].double().numpy(), SLOPES.double().numpy()
    expected = HALF * len(RECORDS)
    deviation = STEP * SIGMA * CLIP / expected
    means = [-STEP * gradients[list(chosen)].sum() / expected for chosen in batches()]

    def proposed(w):
        return np.mean([stats.norm.pdf(w, mean, deviation) for mean in means], axis=0)

    def accepted(w):
        changes = inputs * w + 4.0 * slopes * (inputs * w) ** 2
        found = []
        for chosen in batches():
            change = changes[list(chosen)].mean() / CLIP_V if any(chosen) else 0.0
            found.append(stats.norm.cdf((BETA - np.clip(change, -1, 1)) / (2 * SIGMA_V)))
        return float(np.mean(found))

    grid = np.linspace(-3, 3, 1201)
    density = proposed(grid) * np.array([accepted(w) for w in grid])
    cumulated = integrate.cumulative_simpson(density, x=grid, initial=0.0)
    total = cumulated[-1]
    return (lambda w: np.interp(w, grid, cumulated / total)), float(total)


def released_weights(trials=2500):
    """Weights that a run releases from the same start, by its own gate, and how many trials it took."""
    recipe = DPSUR(
        expected_batch_size=1,
        releases=trials,
        noise_multiplier=SIGMA,
        clip_norm=CLIP,
        learning_rate=STEP,
        momentum=0.0,
        gate_batch_size=1,
        gate_clip=CLIP_V,
        gate_noise_multiplier=SIGMA_V,
        gate_threshold=BETA,
    )
    data = Records.from_arrays(RECORDS, torch.arange(len(RECORDS)), classes=len(RECORDS))
    plan = recipe.plan(len(RECORDS), Budget(epsilon=1e6, delta=1e-3))
    for sampler in (plan.sampler, plan.selecting.gate.change.sampler):
        object.__setattr__(sampler, "rate", HALF)
    run = start(OneWeight(), data, plan, loss=linear_loss, seed=11)
    begin, found = run.state.snapshot(), []
    trials_of = run._trials
    for number in range(trials):
        if trials_of.turn(number).updated:
            found.append(float(run.state.parameters))
            run.state.restore(begin)
    return np.array(found), trials


@pytest.fixture(scope="module")
def law():
    return theory()


def follows(law, weights, trials):
    cumulated, probability = law
    share = stats.binomtest(len(weights), trials, probability).pvalue
    return stats.kstest(weights, cumulated).pvalue > 1e-3 and share > 1e-3


def test_the_released_weight_has_the_density_of_the_theory(law):
    assert follows(law, *released_weights())


def test_a_gate_with_half_the_noise_would_be_noticed(law, monkeypatch):
    right = LossChange.noisy
    monkeypatch.setattr(
        LossChange, "noisy", lambda self, trial, multiplier: right(self, trial, 0.5 * multiplier)
    )
    assert not follows(law, *released_weights())


def test_a_gate_that_sees_the_loss_of_one_model_only_would_be_noticed(law, monkeypatch):
    def one_model(self, trial):
        batch = self.sampler.draw(trial.stream("gate batch"))
        before = trial.losses(batch)
        trial.propose()
        return before

    monkeypatch.setattr(LossChange, "compare", one_model)
    assert not follows(law, *released_weights())


# The buffer and its single-candidate mode.


def updates(data, script, **settings):
    run = begin(data, DPSGDBR(**SIZES, progress="none", tie=0.0, **settings), script=script)
    return [run.release().updated for _ in script]


def test_two_candidates_are_gathered_before_one_becomes_the_update(data):
    assert updates(data, [-1, None, -2, -1, -1], patience=None) == [False, False, True, False, True]


def test_one_candidate_is_enough_after_so_many_rejections_and_not_after_the_next_update(data):
    script = [None, None, None, -1, -1, -1, None, -1]
    #         three in a row: single mode begins; the next that passes is an update and ends it
    assert updates(data, script, patience=3) == [False, False, False, True, False, True, False, False]


def test_a_candidate_that_waits_is_taken_when_the_mode_begins(data):
    assert updates(data, [-1, None, None, None, -1], patience=2) == [False, False, True, False, False]


def test_without_patience_the_mode_never_begins(data):
    assert updates(data, [None] * 20 + [-1, -1], patience=None) == [False] * 21 + [True]


def test_the_literal_condition_could_never_hold(data):
    """Algorithm 1 looks at the counter between updates only, where an acceptance has just set it to 0."""
    run = begin(data, DPSGDBR(**SIZES, progress="none", patience=3), script=[None, None, None, None, -1, -1])
    for _ in range(6):
        if run.release().updated:
            assert run.state.selection.rejected_in_a_row == 0


@pytest.mark.parametrize(("takes", "place"), [("better", 1), ("worse", 0)])
def test_the_candidate_that_is_taken_is_the_one_whose_score_says_so(data, takes, place):
    run = begin(
        data,
        DPSGDBR(**SIZES, progress="none", patience=None, tie=0.0, takes=takes),
        script=[-1.0, -3.0],
    )
    start_weights, gradients = run.state.parameters.clone(), []
    for _ in range(2):
        run.release()
        gradients.append(run.state.selection.waiting[len(gradients)].clone())
    expected = start_weights - SIZES["learning_rate"] * gradients[place]
    torch.testing.assert_close(run.state.parameters, expected)


# The phases of the decay.


def decaying(data, script, **settings):
    recipe = DPSGDBR(
        **SIZES, buffer_size=1, patience=None, fast_decay=0.9, slow_decay=0.99, decay_floor=0.5, **settings
    )
    return begin(data, recipe, script=script)


def test_fast_and_slow_phases_move_what_the_paper_says(data):
    """The first score sets the mark; a bad one calls for slow decay, a very good one for fast decay."""
    run = decaying(data, [0.0, 5.0, -60.0, -60.0], decay_trigger=0.5)
    run.release()
    before = run.state.selection.phase
    run.release()
    slow = run.state.selection.phase
    assert (slow.noise, slow.gate_threshold, slow.learning_rate) == pytest.approx(
        tuple(0.99 * getattr(before, name) for name in ("noise", "gate_threshold", "learning_rate"))
    )
    assert slow.gate_noise == before.gate_noise
    run.release()
    fast = run.state.selection.phase
    assert (fast.noise, fast.gate_noise, fast.learning_rate) == pytest.approx(
        tuple(0.9 * getattr(slow, name) for name in ("noise", "gate_noise", "learning_rate"))
    )
    assert fast.gate_threshold == slow.gate_threshold


def test_the_next_trial_is_made_and_charged_with_the_moved_parameters(data):
    run = decaying(data, [0.0, -60.0, -60.0], decay_trigger=0.5)
    run.release()
    run.release()
    phase = run.state.selection.phase
    assert phase.noise < 1.0
    release = run.release()
    assert release.noise_multiplier == pytest.approx(phase.noise * SIZES["noise_multiplier"])
    assert release.learning_rate == pytest.approx(phase.learning_rate * SIZES["learning_rate"])
    event = run.filter.history.charges()[-1][0]
    gate = run.plan.selecting.gate
    assert event.noise_multiplier == pytest.approx(phase.noise)
    assert event.gate_multiplier == pytest.approx(phase.gate_noise * gate.noise_multiplier)
    assert event.gate_threshold == pytest.approx(phase.gate_threshold * gate.threshold)


def test_a_rejected_trial_moves_no_parameter(data):
    run = decaying(data, [-1.0, None, None], decay_trigger=0.5)
    run.release()
    phase = run.state.selection.phase
    run.release()
    run.release()
    assert run.state.selection.phase == phase


def test_nothing_falls_below_the_floor(data):
    run = decaying(data, [0.0] + [-60.0] * 30, decay_trigger=0.5)
    for _ in range(30):
        run.release()
    phase = run.state.selection.phase
    assert (phase.noise, phase.gate_noise, phase.learning_rate) == (0.5, 0.5, 0.5)


def test_beyond_epsilon_b_nothing_decays_any_more(data):
    def phases(**settings):
        run = decaying(data, [0.0] + [-60.0] * 20, decay_trigger=0.5, **settings)
        return [(run.release().epsilon, run.state.selection.phase.noise) for _ in range(20)]

    free = phases()
    bounded = phases(decay_until=free[4][0])
    assert bounded[:4] == free[:4]
    assert {noise for _, noise in bounded[4:]} == {free[3][1]}
    assert len({noise for _, noise in free}) > 6


# How runs end, and what they tell.


def test_the_paper_s_formula_can_end_a_run_and_says_nothing_of_its_guarantee(data):
    run = begin(data, replace(KINDS["sgd"], claimed_epsilon=6.0))
    for _ in run:
        pass
    event = run.plan.selecting.claimed_event(run.plan.candidate(0))
    last, next_one = (
        claimed_epsilon([(event, made)], ROOMY.delta, orders=WHOLE_ORDERS)
        for made in (run.state.updates, run.state.updates + 1)
    )
    assert last <= 6.0 < next_one
    certificate = conclude(run).certificate
    assert certificate.epsilon_claimed == pytest.approx(last)
    assert certificate.epsilon > last


def test_under_hidden_accounting_no_file_tells_of_trials_or_time(data, tmp_path):
    told = {}
    for accounting in Accounting.VISIBLE, Accounting.HIDDEN:
        folder = tmp_path / str(accounting)
        run = begin(data, replace(KINDS["sgd"], releases=8), accounting=accounting, folder=folder, seed=5)
        drive(run, public=data, marks=4)
        conclude(run)
        told[accounting] = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert all(mark["seconds"] is not None and "trials" in mark["told"] for mark in told[Accounting.VISIBLE])
    assert all(mark["seconds"] is None for mark in told[Accounting.HIDDEN])
    assert all(set(mark["told"]) == {"updates"} for mark in told[Accounting.HIDDEN])


def test_public_files_of_a_hidden_run_do_not_depend_on_the_number_of_rejections(data, tmp_path):
    """Two runs that differ in nothing but how often a candidate was rejected write the same log and the same marks."""
    written = []
    for rejections in 0, 3:
        folder = tmp_path / str(rejections)
        run = begin(data, replace(KINDS["sgd"], releases=4), accounting=Accounting.HIDDEN, folder=folder)
        object.__setattr__(run._trials._selecting, "gate", patient(run.plan.selecting.gate, rejections))
        drive(run, marks=4)
        conclude(run)
        written.append(
            [(folder / name).read_text() for name in ("events.jsonl", "metrics.jsonl", "run.json")]
        )
    assert written[0] == written[1]


def test_a_hidden_release_that_finds_no_candidate_stops_with_an_error(data):
    run = begin(data, replace(KINDS["sgd"], releases=4), accounting=Accounting.HIDDEN)
    cap = run.plan.termination.cap
    assert (1 - run.plan.termination.lowest_acceptance) ** cap < 1e-3
    object.__setattr__(run._trials._selecting, "gate", patient(run.plan.selecting.gate, math.inf))
    with pytest.raises(TrialsExhausted, match="paid for"):
        run.release()
    with pytest.raises(UserError, match="half-way"):
        run.release()


def test_patience_is_refused_where_rejections_are_secret(data):
    with pytest.raises(UserError, match="patience"):
        begin(data, DPSGDBR(**SIZES, progress="none", patience=3), accounting=Accounting.HIDDEN)


def test_what_a_run_tells_where_it_ends_is_what_its_certificate_says_of_what_ran(data):
    run = begin(data, replace(KINDS["sgd"], claimed_epsilon=6.0))
    last = list(run)[-1]
    assert last.number < run.plan.releases
    assert last.epsilon == pytest.approx(conclude(run).certificate.epsilon_of_what_ran, rel=1e-6)


@pytest.mark.parametrize("end", ["the filter", "the claimed epsilon", "a request"])
def test_the_last_release_is_told_however_a_run_ends(data, tmp_path, end):
    if end == "the filter":
        recipe, budget = replace(KINDS["buffered"], progress="scores"), Budget(epsilon=40.0, delta=1e-3)
        plan = replace(recipe, releases=None).plan(EXAMPLES, budget)
        run = start(network(), data, plan, seed=3, folder=tmp_path / "run")
    else:
        claimed = 6.0 if end == "the claimed epsilon" else None
        run = begin(data, replace(KINDS["sgd"], claimed_epsilon=claimed), folder=tmp_path / "run")

    class Impatient:
        def release(self, number):
            run.stop_requested = end == "a request" and number == 3

        def mark(self, mark):
            pass

        def close(self):
            pass

    drive(run, public=data, marks=1, listeners=[Impatient()])
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert 0 < run.state.releases < run.plan.releases
    assert last["release"] == run.state.releases
    assert last["accuracy"] is not None
    assert last["told"]["updates"] == run.state.updates
