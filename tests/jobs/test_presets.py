import pytest

from discreet.errors import UserError
from discreet.jobs.job import Job
from discreet.recipes import DPSUR, RECIPES


def job(**settings):
    return Job.from_settings({"data": "fashion-mnist", "recipe": "dpsur", "preset": "paper", **settings})


def test_a_preset_gives_what_the_paper_publishes_for_the_data_at_the_nearest_epsilon():
    for epsilon, nearest in ((1.0, 1.0), (2.9, 3.0), (9.0, 4.0)):
        assert job(epsilon=epsilon).settings == DPSUR.presets["fashion-mnist"][nearest]


def test_what_is_said_beside_a_preset_wins():
    settings = job(epsilon=1.0, learning_rate=9.0).settings
    assert settings == {**DPSUR.presets["fashion-mnist"][1.0], "learning_rate": 9.0}


def test_where_a_run_ends_by_the_papers_formula_the_preset_is_that_of_the_claimed_epsilon():
    settings = job(epsilon=6.0, claimed_epsilon=1.0).settings
    assert settings == {**DPSUR.presets["fashion-mnist"][1.0], "claimed_epsilon": 1.0}


def test_a_preset_may_name_the_network():
    assert job(data="imdb", epsilon=1.0).model == "lstm-imdb"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"preset": "best"}, "preset is 'best'; it can be"),
        ({"data": "digits"}, "recipe dpsur has no preset 'paper' for digits; it has one for mnist"),
        ({"recipe": "dp-adam"}, "recipe dp-adam has no preset 'paper' for fashion-mnist"),
    ],
)
def test_a_preset_that_is_not_there_is_refused(settings, told):
    with pytest.raises(UserError, match=told):
        job(**settings)


@pytest.mark.parametrize("name", RECIPES)
def test_every_preset_is_made_of_settings_that_there_are(name):
    for data, by_epsilon in RECIPES[name].presets.items():
        for epsilon in by_epsilon:
            Job.from_settings(
                {"data": data, "recipe": name, "preset": "paper", "epsilon": epsilon}
            ).chosen_recipe()
