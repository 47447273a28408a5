"""The game of the canaries through the real loop: what it proves lies below what is certified, and not far below."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch

from discreet.accounting import Accounting, Budget, Gaussian, epsilon
from discreet.audit import game as game_module
from discreet.audit import tally
from discreet.audit.canaries import (
    PULL,
    CanaryRecords,
    Disguise,
    WithCanaries,
    made_up_network,
    made_up_records,
)
from discreet.audit.game import CanaryGame, play, sampled_as
from discreet.audit.promise import certified_epsilon, noisier, promised
from discreet.errors import UserError
from discreet.gradients.clipping import FlatClipping
from discreet.gradients.engine import GradientEngine
from discreet.gradients.layout import FlatLayout
from discreet.plan import Plan
from discreet.recipes import (
    DPSGD,
    DPSGDBR,
    DPSRCG,
    DPSUR,
    FODPSGD,
    RECIPES,
    SADPSGD,
    SMADPSGD,
    PostFMDPSGD,
)
from discreet.training import run as run_module
from discreet.training.fit import cross_entropy

RECORDS, CANARIES = 200, 4000
EXAMPLES = RECORDS + CANARIES
GATED = {"expected_batch_size": EXAMPLES // 4, "releases": 30}
LOSSES = {**GATED, "gate_batch_size": 40}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    torch.set_num_threads(1)


def game(recipe, at=4.0, **changes):
    settings = {"canaries": CANARIES, "records": RECORDS, "seed": 5, **changes}
    return CanaryGame(recipe=recipe, budget=Budget(epsilon=at, delta=1e-5), **settings)


@functools.cache
def plain(at=4.0):
    return play(game(DPSGD(expected_batch_size=EXAMPLES, releases=8), at, canaries=CANARIES))


def test_a_canary_moves_the_sum_by_the_sensitivity_in_a_direction_of_its_own():
    records = made_up_records(6, seed=0)
    model = WithCanaries(made_up_network(), 5)
    data = CanaryRecords(records, torch.tensor([True, False, True, True, False]))
    engine = GradientEngine(model, Disguise(classes=3).loss(cross_entropy), FlatLayout.of(model))
    rule, total = FlatClipping(clip_norm=0.3), engine.layout.zeros()

    def sums(indices):
        engine.clipped_sum(*data.batch(torch.tensor(indices)), rule, total)
        return {name: view.clone() for name, view in engine.layout.views(total).items()}

    alone = sums([6, 7, 8])
    assert alone["nest.weight"][:, 0].tolist() == pytest.approx([0.0, -0.3, 0.0, -0.3, 0.0, 0.0], rel=1e-5)
    assert not alone["network.weight"].any()
    both = sums([0, 1, 2, 6])
    without = sums([0, 1, 2])
    assert both["network.weight"].equal(without["network.weight"])
    assert not without["nest.weight"].any()


def test_a_canarys_loss_falls_as_its_weight_grows():
    model = WithCanaries(made_up_network(), 2)
    data = CanaryRecords(made_up_records(4, seed=0), torch.tensor([True, True]))
    inputs, targets = data.batch(torch.arange(6))
    with torch.no_grad():
        model.nest.weight[1] = 0.5
        losses = Disguise(classes=3).loss(cross_entropy)(model(*inputs), targets)
    assert losses[4:].tolist() == [-0.5 * PULL, 0.0]
    assert (losses[:4] > 0).all()


def test_canaries_that_are_out_are_in_no_batch_and_still_numbered():
    data = CanaryRecords(made_up_records(4, seed=0), torch.tensor([False, True, False]))
    assert len(data) == 7
    (inputs, tokens), targets = data.batch(torch.arange(7))
    assert tokens.tolist() == [0, 0, 0, 0, 2]
    assert targets[4] == 3
    assert len(inputs) == 5


@pytest.mark.parametrize("at", [1.0, 4.0])
def test_for_plain_dp_sgd_the_proof_comes_near_the_certificate(at):
    recipe = DPSGD(expected_batch_size=20_200, releases=8)
    found = play(game(recipe, at, canaries=20_000))
    assert 0.7 * found.certified <= found.best <= found.certified
    assert found.one_run <= found.by_curve <= found.certified
    assert not found.refuted


def test_one_run_alone_comes_near_too_with_many_canaries():
    found = play(game(DPSGD(expected_batch_size=100_200, releases=4), 4.0, canaries=100_000))
    assert 0.7 * found.certified <= found.by_curve <= found.certified


def test_with_sampling_too():
    found = play(game(DPSGD(expected_batch_size=2020, releases=60), 4.0, canaries=20_000))
    assert 0.7 * found.certified <= found.pooled <= found.certified


GATES = {
    "dpsur": DPSUR(**LOSSES),
    "dpsr-cg": DPSRCG(**GATED),
    "dpsgd-br": DPSGDBR(**LOSSES),
    "sa-dp-sgd": SADPSGD(**LOSSES),
}


@pytest.mark.parametrize("name", GATES)
def test_for_a_recipe_with_a_gate_the_proof_stays_below_the_certificate(name):
    found = play(game(GATES[name]))
    assert 0.0 < found.best < found.certified
    assert found.pooled is None
    assert not found.refuted
    assert found.updates <= found.releases


def test_where_trials_are_hidden_too():
    recipe = DPSUR(**{**LOSSES, "releases": 12})
    found = play(game(recipe, accounting=Accounting.HIDDEN))
    assert found.updates == 12
    assert 0.0 < found.best < found.certified


@pytest.mark.parametrize("name", sorted(set(RECIPES) - set(GATES) - {"dp-sgd"}))
def test_any_recipe_can_be_audited_by_its_name(name):
    recipe = RECIPES[name](expected_batch_size=EXAMPLES // 2, releases=4)
    assert not play(game(recipe)).refuted


MEMORIES = {
    "fo-dp-sgd": FODPSGD(expected_batch_size=EXAMPLES, releases=8, fresh_weight=0.5),
    "post-fm-dp-sgd": PostFMDPSGD(expected_batch_size=EXAMPLES, releases=8, fresh_weight=0.5),
    "sma-dp-sgd": SMADPSGD(
        expected_batch_size=EXAMPLES, releases=8, fresh_weight=0.5, clipping="flat", warm_up=1.0
    ),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_a_memory_hides_nothing_that_plain_dp_sgd_gives_away(name):
    found = play(game(MEMORIES[name]))
    assert found.certified == pytest.approx(plain().certified, rel=1e-3)
    assert found.pooled == pytest.approx(plain().pooled, rel=0.1)
    assert not found.refuted


def test_a_plan_that_counts_the_memorys_weight_twice_is_refuted(monkeypatch):
    honest = Plan.plain_multiplier_at
    monkeypatch.setattr(Plan, "plain_multiplier_at", lambda plan, release: 2.0 * honest(plan, release))
    assert play(game(MEMORIES["fo-dp-sgd"])).refuted


def test_stopped_in_the_middle_an_audit_goes_on_and_finds_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(tally, "_SECONDS", 0.0)
    asked = game(GATES["dpsur"])

    def stop(number, of):
        if number == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(asked, folder=tmp_path / "run", progress=stop)
    made = []
    found = play(asked, folder=tmp_path / "run", progress=lambda number, of: made.append(number))
    assert made[0] in (11, 12)
    assert found == play(asked)
    assert not (tmp_path / "run").exists()


def test_stopped_while_it_is_judged_an_audit_is_made_again(tmp_path, monkeypatch):
    asked = game(DPSGD(expected_batch_size=EXAMPLES, releases=8))

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(game_module, "_judged", stop)
        with pytest.raises(KeyboardInterrupt):
            play(asked, folder=tmp_path / "run")
    assert play(asked, folder=tmp_path / "run") == plain()


def test_the_sentence_is_no_surer_of_the_best_of_its_bounds_than_it_may_be():
    found = plain()
    assert found.joint_confidence == pytest.approx(0.85)
    assert "all of them with 85.0%" in found.sentence()
    assert replace(found, pooled=None).joint_confidence == pytest.approx(0.9)


def test_an_audit_that_lost_its_scores_begins_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tally, "_SECONDS", 0.0)
    asked = game(DPSGD(expected_batch_size=EXAMPLES, releases=8))

    def stop(number, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(asked, folder=tmp_path / "run", progress=stop)
    for file in (tmp_path / "run").glob("scores-*"):
        file.unlink()
    assert play(asked, folder=tmp_path / "run") == plain()


def test_the_same_seed_gives_the_same_audit_and_another_one_another():
    again = play(game(DPSGD(expected_batch_size=EXAMPLES, releases=8)))
    assert again == plain()
    other = play(game(DPSGD(expected_batch_size=EXAMPLES, releases=8), seed=6))
    assert other.right != again.right


def test_noise_that_is_too_small_is_refuted(monkeypatch):
    right = run_module.add_gaussian_
    monkeypatch.setattr(
        run_module, "add_gaussian_", lambda vector, stddev, stream: right(vector, 0.6 * stddev, stream)
    )
    found = play(game(DPSGD(expected_batch_size=EXAMPLES, releases=8)))
    assert found.refuted
    assert found.best > found.certified
    assert "REFUTED" in found.sentence()


def test_canaries_that_are_all_alike_prove_nothing(monkeypatch):
    """The planted fault: the audit looks at its own coins upside down, or not at all."""
    monkeypatch.setattr(game_module, "evidence", lambda run, release: torch.zeros(CANARIES))
    found = play(game(DPSGD(expected_batch_size=EXAMPLES, releases=8)))
    assert found.best < 0.3 * found.certified


def test_the_promise_is_the_certificate_as_a_curve():
    for recipe, accounting in (
        (DPSGD(expected_batch_size=400, releases=20), Accounting.VISIBLE),
        (DPSUR(**{**LOSSES, "releases": 8}), Accounting.HIDDEN),
        (DPSGDBR(**LOSSES), Accounting.VISIBLE),
    ):
        plan = game(recipe, accounting=accounting).plan()
        at = certified_epsilon(plan)
        curve = promised(plan)
        found = max(curve.add(np.array([at]))[0], curve.remove(np.array([at]))[0])
        assert found == pytest.approx(1e-5, rel=0.02), recipe.name
        assert curve.add(np.array([0.5 * at]))[0] > 1e-4


def test_more_noise_costs_less_whatever_the_event():
    plan = game(DPSUR(**LOSSES)).plan()
    costs = [
        epsilon(noisier(plan.charges(), factor), 1e-5, accounting=plan.accounting)
        for factor in (0.7, 1, 2, 8)
    ]
    assert costs == sorted(costs, reverse=True)
    assert noisier([(Gaussian(noise_multiplier=2.0), 3)], 1.5) == [(Gaussian(noise_multiplier=3.0), 3)]


def test_batches_keep_their_share_of_the_records():
    other = sampled_as(DPSUR(expected_batch_size=2048, gate_batch_size=256), of=60_000, to=30_000)
    assert (other.expected_batch_size, other.gate_batch_size) == (1024, 128)
    assert replace(other, expected_batch_size=2048, gate_batch_size=256) == DPSUR(
        expected_batch_size=2048, gate_batch_size=256
    )


def test_an_audit_without_canaries_is_refused():
    with pytest.raises(UserError, match="at least 20 canaries"):
        game(DPSGD(), canaries=3)
