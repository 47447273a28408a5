import pytest

from discreet.bench.compare import Method, Study
from discreet.errors import UserError


def study(**changes):
    record = {
        "methods": [{"recipe": "dp-sgd"}, {"recipe": "dpsur", "preset": "paper"}],
        "data": ["mnist", "fashion-mnist"],
        "epsilons": [1, 3.0],
        "seeds": 2,
        **changes,
    }
    return Study.from_json(record)


def test_a_cell_is_a_method_on_data_at_an_epsilon_with_a_seed():
    cells = study().cells()
    assert len(cells) == 2 * 2 * 2 * 2
    assert len({cell.name for cell in cells}) == len(cells)
    assert [cell.seed for cell in cells] == [1] * 8 + [2] * 8
    job = cells[0].job()
    assert (job.data, job.recipe, job.epsilon, job.seed, job.threads) == ("mnist", "dp-sgd", 1.0, 1, 1)


def test_all_methods_are_given_the_same_certified_epsilon():
    assert {(cell.epsilon, cell.job().epsilon) for cell in study().cells()} == {(1.0, 1.0), (3.0, 3.0)}


def test_the_nearer_a_setting_stands_to_a_cell_the_more_it_counts():
    layered = study(
        settings={"learning_rate": 1.0, "epochs": 1, "momentum": 0.1, "clip_norm": 0.1},
        by_data={"mnist": {"learning_rate": 2.0, "epochs": 2, "momentum": 0.2}},
        methods=[
            {
                "recipe": "dp-sgd",
                "learning_rate": 3.0,
                "epochs": 3,
                "by_data": {"mnist": {"learning_rate": 4.0}},
            }
        ],
    )
    settings = {cell.data: cell.job().settings for cell in layered.cells()}
    assert settings["mnist"] == {"learning_rate": 4.0, "epochs": 3, "momentum": 0.2, "clip_norm": 0.1}
    assert settings["fashion-mnist"] == {"learning_rate": 3.0, "epochs": 3, "momentum": 0.1, "clip_norm": 0.1}


def test_a_preset_is_beneath_all_other_settings_and_that_of_the_cells_epsilon():
    cells = study(settings={"clip_norm": 0.3}).cells()
    found = {
        cell.epsilon: cell.job().settings for cell in cells if (cell.method, cell.data) == ("dpsur", "mnist")
    }
    assert found[1.0]["noise_multiplier"] == 2.0
    assert found[3.0]["noise_multiplier"] == 1.35
    assert found[1.0]["clip_norm"] == 0.3


def test_a_grid_has_a_cell_for_every_combination():
    grid = {"learning_rate": [1.0, 2.0, 4.0], "clip_norm": [0.1, 1.0]}
    cells = study(
        methods=[{"recipe": "dp-sgd", "grid": grid}], data=["mnist"], epsilons=[1], seeds=[5]
    ).cells()
    points = [(cell.job().settings["learning_rate"], cell.job().settings["clip_norm"]) for cell in cells]
    assert sorted(points) == [(1.0, 0.1), (1.0, 1.0), (2.0, 0.1), (2.0, 1.0), (4.0, 0.1), (4.0, 1.0)]


def test_a_claimed_epsilon_ends_a_run_whose_budget_leaves_it_room():
    method = {"recipe": "dpsur", "preset": "paper", "claimed": True}
    cell = study(methods=[method]).cells()[0]
    assert cell.method == "dpsur, claimed"
    assert cell.job().settings["claimed_epsilon"] == 1.0
    assert cell.job().settings["noise_multiplier"] == 2.0
    assert cell.job().epsilon > 3.5


def test_a_method_with_a_memory_is_followed_by_the_plain_one_that_costs_the_same():
    method = {"recipe": "fo-dp-sgd", "fresh_weight": 0.5, "matched": True}
    cells = study(methods=[method], data=["mnist"], epsilons=[1], seeds=1).cells()
    assert [(cell.method, cell.matched) for cell in cells] == [
        ("fo-dp-sgd", False),
        ("fo-dp-sgd: matched dp-sgd", True),
    ]
    assert cells[0].name != cells[1].name


def test_a_study_is_read_back_as_it_was_written():
    assert Study.from_json(study().to_json()).cells() == study().cells()


def test_another_setting_is_another_cell():
    first, second = (study(settings={"epochs": epochs}).cells()[0] for epochs in (1, 2))
    assert first.name != second.name


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"methods": []}, "methods is empty"),
        ({"methods": [{"recipe": "sgd"}]}, "recipe is 'sgd'"),
        ({"methods": ["dp-sgd"]}, "a method is 'dp-sgd'; it is a table"),
        ({"methods": [{"recipe": "dp-sgd"}, {"recipe": "dp-sgd"}]}, "each can be there once"),
        ({"methods": [{"recipe": "dp-sgd", "epsilon": 1.0}]}, "epsilon stands among the settings"),
        ({"methods": [{"recipe": "dp-sgd", "grid": {"epochs": 3}}]}, "grid has epochs = 3; it is a list"),
        ({"methods": [{"recipe": "dpsur", "matched": True}]}, "dpsur is to be matched, and has no memory"),
        ({"data": "mnist"}, "data is 'mnist'; it is a list"),
        ({"epsilons": [0.0]}, "epsilon is 0.0"),
        ({"epsilons": [float("nan")]}, "epsilon is nan"),
        ({"seeds": [1, 1]}, "each can be there once"),
        ({"seeds": ["one"]}, "seed is 'one'"),
        ({"by_data": {"digits": {}}}, "settings are given for 'digits'"),
        ({"colour": "red"}, "a comparison has no 'colour'"),
    ],
)
def test_what_is_no_study_is_refused(changes, told):
    with pytest.raises(UserError, match=told):
        study(**changes)


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ({"recipe": "dp-sgd", "lerning_rate": 1.0}, "dp-sgd on mnist: there is no setting 'lerning_rate'"),
        ({"recipe": "dpsur", "claimed": True}, "needs a noise_multiplier"),
        ({"recipe": "dp-adam", "preset": "paper"}, "has no preset 'paper' for mnist"),
    ],
)
def test_a_cell_that_cannot_be_is_refused_before_anything_is_computed(method, told):
    with pytest.raises(UserError, match=told):
        study(methods=[method]).check()


def test_methods_are_refused_without_their_recipe():
    with pytest.raises(UserError, match="there are dp-sgd"):
        Method(recipe="nothing")
