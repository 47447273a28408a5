"""Repeated records are counted exactly, and the certificate says what is left for them."""

import pytest
import torch

from discreet import start
from discreet.accounting import Accounting, Budget, epsilon
from discreet.accounting.copies import epsilon_of_copies
from discreet.audit.duplicates import duplicates
from discreet.cli.main import main
from discreet.data import Records
from discreet.recipes import DPSGD, DPSGDBR, DPSUR
from discreet.training import fit
from discreet.training.outcome import conclude


def records(rows, targets):
    return Records.from_arrays(torch.tensor(rows), torch.tensor(targets), classes=2)


def test_equal_records_are_counted_and_nearly_equal_ones_are_not():
    found = duplicates(
        records(
            [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0000002], [0.0, 3.0], [-0.0, 3.0], [1.0, 2.0]],
            [0, 0, 0, 1, 1, 1],
        )
    )
    assert (found.records, found.repeated, found.groups, found.largest) == (6, 4, 2, 2)
    assert found.conflicting == 1
    assert "4 of the 6 records occur more than once" in found.sentence()


def test_without_duplicates_it_says_so():
    found = duplicates(records([[1.0], [2.0]], [0, 1]))
    assert found.largest == 1
    assert found.sentence() == "No two of the 2 records are equal."


def header(recipe, accounting, at):
    return recipe.plan(1000, Budget(epsilon=at, delta=1e-5), accounting=accounting).header(secure_noise=True)


@pytest.mark.parametrize(
    ("recipe", "accounting"),
    [
        (DPSGD(expected_batch_size=100, releases=50), Accounting.VISIBLE),
        (DPSUR(expected_batch_size=100, gate_batch_size=10, releases=20), Accounting.HIDDEN),
        (DPSGDBR(expected_batch_size=100, gate_batch_size=10, releases=20), Accounting.VISIBLE),
    ],
    ids=["planned", "capped", "adaptive"],
)
def test_copies_cost_more_than_their_number_times_epsilon_and_one_costs_epsilon(recipe, accounting):
    at = 4.0 if recipe.name == "dpsgd-br" else 1.0
    promise = header(recipe, accounting, at)
    costs = [epsilon_of_copies(promise, copies) for copies in (1, 2, 4)]
    assert costs[0] == pytest.approx(at, rel=0.05)
    assert 2.0 * at < costs[1] < 0.6 * costs[2]


def test_for_unsampled_releases_it_is_nearly_the_gaussian_that_much_further_away():
    recipe = DPSGD(expected_batch_size=1000, releases=10)
    plan = recipe.plan(1000, Budget(epsilon=1.0, delta=1e-5))
    nearer = DPSGD(expected_batch_size=1000, releases=10, noise_multiplier=plan.noise.multiplier / 3).plan(
        1000, Budget(epsilon=100.0, delta=1e-5)
    )
    exact = epsilon(nearer.charges(), 1e-5)
    assert exact <= epsilon_of_copies(plan.header(secure_noise=True), 3) <= 1.03 * exact


def test_the_certificate_says_it_when_asked(tmp_path, capsys):
    data = records([[float(n), 1.0] for n in range(40)], [n % 2 for n in range(40)])
    recipe = DPSGD(expected_batch_size=10, releases=5)
    plan = recipe.plan(40, Budget(epsilon=1.0, delta=1e-5))
    run = start(torch.nn.Linear(2, 2), data, plan, folder=tmp_path / "run")
    fit.drive(run)
    conclude(run)
    assert main(["certificate", str(tmp_path / "run"), "--copies", "2"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "A record that occurs 2 times" in told
    assert main(["certificate", str(tmp_path / "run"), "--copies", "0"]) == 2
    assert main(["certificate", str(tmp_path / "run")]) == 0
    assert "occurs" not in capsys.readouterr().out
