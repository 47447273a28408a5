"""Attacks: their scores against formulas, and that they find members where a model knows its records by heart."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import nn

from discreet.audit import shadows as shadows_module
from discreet.audit.attack import ATTACKS, attack, split_for
from discreet.audit.learned_attacks import black_box_features, white_box_features
from discreet.audit.likelihood_attacks import label_probabilities, lira, log_odds, rmia
from discreet.audit.measures import area
from discreet.audit.outputs import Outputs, outputs_of
from discreet.audit.page import attack_page
from discreet.audit.shadows import Shadows, Subject
from discreet.data import Records
from discreet.errors import CorruptFile, UserError
from discreet.jobs.job import Job


def test_log_odds_are_exact_where_probabilities_round_to_one():
    logits = np.array([[60.0, 0.0, 0.0], [0.0, 1.0, 2.0], [-5.0, 800.0, 0.0]])
    found = log_odds(logits, np.array([0, 2, 0]))
    assert found[0] == pytest.approx(60 - np.log(2))
    assert found[1] == pytest.approx(2 - np.log(1 + np.e))
    assert found[2] == pytest.approx(-805)
    assert label_probabilities(logits, np.array([0, 2, 0]))[1] == pytest.approx(
        np.e**2 / (1 + np.e + np.e**2)
    )


def world(models, records=1500, gap=1.0, seed=0, spread=(1.0, 0.6)):
    """Log-odds with a level of each record's own; a model that had the record is surer of it, and steadier."""
    draw = np.random.default_rng(seed)
    level = 4 * draw.standard_normal(records)
    member = draw.random((models + 1, records)) < 0.5
    deviation = np.where(member, spread[1], spread[0])
    values = level + gap * member + deviation * draw.standard_normal((models + 1, records))
    return values[0], member[0], values[1:], member[1:]


def test_online_lira_is_the_likelihood_ratio_of_two_normals():
    target, truth, values, member = world(400)
    scores = lira(target, values, member, online=True)
    place = 7
    inside, outside = values[member[:, place], place], values[~member[:, place], place]
    expected = norm.logpdf(target[place], inside.mean(), inside.std(ddof=1)) - norm.logpdf(
        target[place], outside.mean(), outside.std(ddof=1)
    )
    assert scores[place] == pytest.approx(expected)
    assert area(scores, truth) > 0.78


def test_offline_lira_asks_how_strange_the_target_is_without_the_record():
    target, truth, values, member = world(400)
    scores = lira(target, values, member, online=False)
    outside = values[~member[:, 3], 3]
    assert scores[3] == pytest.approx((target[3] - outside.mean()) / outside.std(ddof=1))
    assert 0.7 < area(scores, truth) < area(lira(target, values, member, online=True), truth)


def test_with_few_shadows_each_kind_of_model_has_its_own_pooled_deviation():
    """A known fault takes the deviation of models without a record from those that had it."""
    target, truth, values, member = world(16, spread=(1.0, 0.2), gap=0.5)
    right = lira(target, values, member, online=True)
    swapped_out = np.where(member, values, target)  # what the fault would look at
    assert area(right, truth) > 0.75
    deviation = np.sqrt(
        np.where(~member, (values - np.where(~member, values, 0).sum(0) / (~member).sum(0)) ** 2, 0).sum()
        / ((~member).sum(0) - 1).sum()
    )
    assert deviation == pytest.approx(1.0, rel=0.05)
    outside = np.where(~member, values, 0).sum(0) / (~member).sum(0)
    assert lira(target, values, member, online=False) == pytest.approx((target - outside) / deviation)
    assert swapped_out.shape == values.shape


def test_scores_against_single_shadows_see_members_too():
    target, truth, values, member = world(4, gap=2.0)
    for online in (True, False):
        assert (
            area(rmia(1 / (1 + np.exp(-target)), 1 / (1 + np.exp(-values)), member, online=online), truth)
            > 0.6
        )


def test_rmia_counts_the_records_that_are_beaten():
    target, _, values, member = world(12, records=60)
    p, q = 1 / (1 + np.exp(-target)), 1 / (1 + np.exp(-values))
    general = (
        np.array([q[member[:, i], i].mean() for i in range(60)])
        + np.array([q[~member[:, i], i].mean() for i in range(60)])
    ) / 2
    ratio = p / general
    for gamma in (1.0, 2.0):
        expected = [(ratio[i] > gamma * np.delete(ratio, i)).mean() for i in range(60)]
        assert rmia(p, q, member, online=True, gamma=gamma) == pytest.approx(expected)


def test_on_models_that_know_nothing_of_their_members_the_attacks_guess():
    target, truth, values, member = world(64, gap=0.0, spread=(1.0, 1.0), records=4000)
    for online in (True, False):
        assert abs(area(lira(target, values, member, online=online), truth) - 0.5) < 0.03


def test_too_few_shadows_are_refused():
    target, _, values, member = world(1)
    with pytest.raises(UserError, match="at least 2"):
        lira(target, values, member, online=True)


def some_outputs():
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    data = Records.from_arrays(torch.randn(30, 5, generator=generator), torch.arange(30) % 3, classes=3)
    return model, data, outputs_of(model, data, torch.arange(30) < 15)


def test_the_white_box_attack_sees_each_records_own_gradient():
    """A known fault sums gradients over the records seen so far."""
    model, data, outputs = some_outputs()
    features = white_box_features(outputs)[-1]
    for record in (0, 1, 17):
        model.zero_grad()
        inputs, targets = data.batch(torch.tensor([record]))
        nn.functional.cross_entropy(model(inputs), targets).backward()
        torch.testing.assert_close(features[record], model[2].weight.grad.flatten(), rtol=1e-4, atol=1e-6)


def test_the_black_box_attack_sees_probabilities_and_not_raw_outputs():
    _, _, outputs = some_outputs()
    sorted_first, right = black_box_features(outputs)
    assert sorted_first.sum(dim=1).tolist() == pytest.approx([1.0] * 30, abs=1e-6)
    assert (sorted_first.diff(dim=1) <= 0).all()
    assert set(right.flatten().tolist()) <= {0.0, 1.0}


def test_outputs_survive_in_a_file_and_a_damaged_one_is_named(tmp_path):
    _, _, outputs = some_outputs()
    outputs.save(tmp_path / "one.npz")
    again = Outputs.load(tmp_path / "one.npz")
    assert again.logits.equal(outputs.logits)
    assert again.member.equal(outputs.member)
    (tmp_path / "one.npz").write_bytes(b"PK" + bytes(50))
    with pytest.raises(CorruptFile, match=r"one\.npz"):
        Outputs.load(tmp_path / "one.npz")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Records whose labels are half chance: who predicts them knows them by heart."""
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((900, 20)).astype(np.float32)
    targets = np.where(generator.random(900) < 0.5, generator.integers(0, 4, 900), inputs[:, :4].argmax(1))
    path = tmp_path_factory.mktemp("data") / "noisy.npz"
    np.savez(path, inputs=inputs, targets=targets)
    return str(path)


def subject(noisy, name, **changes):
    torch.set_num_threads(1)
    job = Job(
        data=noisy,
        classes="4",
        epsilon=2.0,
        delta=1e-4,
        settings={"expected_batch_size": 100, "epochs": 3.0},
    )
    return Subject(**{"job": job, "private": False, "epochs": 200, "split": split_for(name), **changes})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_works_on_a_model_without_privacy(noisy, folder, name):
    models = folder / f"control-{split_for(name)}"
    report = attack(name, subject(noisy, name), folder=models, shadows=8, processes=1)
    assert report.accuracy[0] > 0.95 > 0.7 > report.accuracy[1]
    assert report.certified is None
    for each in report.reached:
        assert each.measures.auc.low > 0.55, each.name
        assert each.measures.auc.value > 0.65, each.name
    if split_for(name) == "halves":
        assert max(each.proven for each in report.reached) > 0.5
    assert "trained without privacy" in report.table()


@pytest.mark.parametrize("name", ["lira", "black-box"])
def test_on_private_models_it_proves_less_than_is_certified(noisy, folder, name):
    models = folder / f"private-{split_for(name)}"
    report = attack(name, subject(noisy, name, private=True), folder=models, shadows=8, processes=1)
    assert 1.9 < report.certified <= 2.0
    for each in report.reached:
        assert each.measures.auc.value < 0.65
        assert (each.proven or 0.0) < report.certified
    json.dumps(report.to_json(), allow_nan=False)


def test_the_page_says_what_the_curve_means(noisy, folder):
    name = "lira"
    report = attack(name, subject(noisy, name), folder=folder / "control-halves", shadows=8, processes=1)
    page = attack_page(report)
    assert "guessing would" in page
    assert "lira online" in page
    assert page.count("<figure") == 2
    assert "http" not in page.replace("http-equiv", "")


def test_finished_models_are_kept_and_only_missing_ones_are_trained(noisy, tmp_path, monkeypatch):
    told = subject(noisy, "lira", epochs=1)
    models = Shadows(told, tmp_path / "models", 3)
    trained = []
    right = shadows_module.train

    def interrupted(subject, pool, number):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(number)
        return right(subject, pool, number)

    monkeypatch.setattr(shadows_module, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        models.train(processes=1)
    assert models.missing == [2]
    kept = models.path(0).read_bytes()
    monkeypatch.setattr(shadows_module, "train", right)
    progress = []
    Shadows(told, tmp_path / "models", 3).train(processes=1, done=lambda *said: progress.append(said))
    assert models.missing == []
    assert models.path(0).read_bytes() == kept
    assert [said[:2] for said in progress] == [(3, 3)]


def test_side_by_side_gives_the_same_models_as_one_after_the_other(noisy, tmp_path):
    told = subject(noisy, "lira", epochs=1)
    one, two = Shadows(told, tmp_path / "one", 2), Shadows(told, tmp_path / "two", 2)
    one.train(processes=1)
    two.train(processes=2)
    for first, second in zip(one.outputs(), two.outputs(), strict=True):
        assert first.logits.equal(second.logits)
        assert first.member.equal(second.member)


def test_models_of_another_subject_are_refused(noisy, tmp_path):
    Shadows(subject(noisy, "lira"), tmp_path, 3)
    with pytest.raises(UserError, match="another subject"):
        Shadows(subject(noisy, "lira", seed=1), tmp_path, 3)


def test_the_split_of_the_papers_is_two_to_one_to_two_to_one(noisy):
    told = subject(noisy, "black-box")
    members = [told.member(number, 600) for number in (0, 1)]
    asked = [told.asked(number, 600) for number in (0, 1)]
    assert [int(each.sum()) for each in (*members, *asked)] == [200, 200, 300, 300]
    assert not (asked[0] & asked[1]).any()
    assert all((own & theirs).equal(own) for own, theirs in zip(members, asked, strict=True))


def test_each_model_has_records_of_its_own_by_the_key(noisy):
    told = subject(noisy, "lira")
    first, second = told.member(0, 600), told.member(1, 600)
    assert first.equal(told.member(0, 600))
    assert 0.4 < float((first == second).double().mean()) < 0.6
    assert not first.equal(replace(told, seed=1).member(0, 600))


def test_models_of_a_job_whose_settings_hold_a_list_are_found_again(tmp_path):
    job = Job.from_settings({"data": "cifar-10", "recipe": "sma-dp-sgd", "preset": "paper"})
    told = Subject(job=job, split="halves")
    Shadows(told, tmp_path / "models", 2)
    assert Shadows(told, tmp_path / "models", 2).missing == [0, 1]
