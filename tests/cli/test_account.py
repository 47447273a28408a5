"""`discreet account`: every mechanism, three accountings, and what is missing or too much."""

import json
from importlib import import_module

import pytest

GATE = "--gate-rate 0.0043 --gate-multiplier 1.3"
COMMON = "--sample-rate 0.034 --noise-multiplier 4 --releases 50"
EVERY = {
    "dp-sgd": "",
    "same-batch": "--also 4",
    "memory": "--fresh-weight 0.9 --groups 4",
    "noisy-selection": "--pure-epsilon 0.3",
    "dpsur": GATE,
    "sa-dp-sgd": f"{GATE} --coldness 2",
    "dpsr-cg": "--gate-multiplier 1.3 --gate-threshold -1",
    "dpsgd-br": f"{GATE} --candidates 3",
}


@pytest.mark.parametrize("mechanism", EVERY)
def test_every_mechanism_answers(discreet, mechanism):
    answer = discreet(f"account {mechanism} {COMMON} {EVERY[mechanism]}")
    assert (answer.code, answer.err) == (0, "")
    assert "epsilon, visible" in answer.out
    assert "epsilon, hidden" in answer.out


def test_the_parser_and_the_answers_know_the_same_mechanisms():
    assert set(import_module("discreet.cli.main").MECHANISMS) == set(EVERY)
    assert set(import_module("discreet.cli.account")._MAKERS) == set(EVERY)


def test_a_claim_is_never_printed_without_its_label(discreet):
    lines = discreet(f"account dpsur {COMMON} {GATE}").out.splitlines()
    claims = [line for line in lines if "claimed" in line]
    assert claims
    assert all("not a guarantee" in line for line in claims)
    record = json.loads(discreet(f"account dpsur {COMMON} {GATE} --json").out)
    assert [name for name in record if "claimed" in name] == ["claimed_no_guarantee"]


def test_noise_is_found_for_a_budget(discreet):
    answer = discreet("account --examples 60000 --expected-batch-size 600 --epochs 10 --epsilon 2 --json")
    record = json.loads(answer.out)
    assert record["releases"] == 1000
    assert 1.98 <= record["hidden"] <= 2.0


def test_trials_are_found_for_a_budget(discreet):
    answer = discreet(f"account dpsur --sample-rate 0.034 --noise-multiplier 4 {GATE} --epsilon 1 --json")
    (charged,) = json.loads(answer.out)["visible"]
    assert 0.99 <= charged["epsilon"] <= 1.0
    assert charged["trials"] > 1000


def test_releases_are_found_for_a_budget_if_trials_stay_secret(discreet):
    words = f"account dpsur --sample-rate 0.034 --noise-multiplier 4 {GATE} --epsilon 1 --accounting hidden --json"
    record = json.loads(discreet(words).out)
    assert 0.985 <= record["hidden"] <= 1.0
    assert len(record["visible"]) == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (f"dpsur {COMMON}", "dpsur needs --gate-rate"),
        (f"dp-sgd {COMMON} --gate-rate 0.1", "dp-sgd takes no --gate-rate"),
        (f"memory {COMMON}", "memory needs --fresh-weight"),
        (f"memory {COMMON} --fresh-weight 0", "fresh_weight"),
        (f"dpsur {COMMON} {GATE} --gate-batch-size 256", "either the gate rate"),
        (f"dpsur {COMMON} --gate-batch-size 256 --gate-multiplier 1", "number of examples"),
        (f"dpsur {COMMON} {GATE} --trials 3", "take at least 50"),
        (f"dpsur --sample-rate 0.1 --releases 5 {GATE} --epsilon 1", "give the trials"),
        (f"dpsur --sample-rate 0.1 --trials 5 {GATE} --epsilon 1 --accounting hidden", "give the releases"),
        ("--sample-rate 0.1", "give noise multiplier and releases"),
        ("--sample-rate 0.1 --epsilon 1", "give either the noise multiplier or the releases"),
        ("--sample-rate 2 --noise-multiplier 1 --releases 1", "sample_rate"),
        ("--sample-rate 0.1 --noise-multiplier 0 --releases 1", "noise_multiplier"),
        ("--sample-rate 0.1 --noise-multiplier 1 --releases 0", "releases is 0"),
        ("--sample-rate 0.1 --noise-multiplier 1 --releases 1 --delta 1", "delta"),
        ("--sample-rate 0.1 --noise-multiplier 1 --releases 1 --epsilon -1", "epsilon"),
        ("wonder --sample-rate 0.1", "invalid choice"),
    ],
)
def test_what_is_missing_or_too_much_is_said_in_one_line(discreet, words, complaint):
    answer = discreet(f"account {words}")
    assert answer.code == 2
    assert answer.out == ""
    assert complaint in answer.err
    assert answer.err.count("\n") == 1
