import errno
import json
import os

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import discreet
from discreet.accounting.log import read_log
from discreet.data import Records
from discreet.errors import CorruptFile, UserError
from discreet.gradients import GradientEngine
from discreet.training import checkpoint
from discreet.training.evaluate import accuracy
from discreet.training.fit import cross_entropy
from discreet.training.folder import RunFolder

BUDGET = discreet.Budget(epsilon=4.0, delta=1e-4)
RECIPE = discreet.DPSGD(expected_batch_size=50, releases=10, learning_rate=1.0)


def clouds(count=200, seed=0):
    generator = torch.Generator().manual_seed(seed)
    targets = torch.arange(count) % 2
    inputs = torch.randn(count, 5, generator=generator) + 3.0 * targets[:, None]
    return Records.from_arrays(inputs, targets, classes=2, name="clouds")


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.fixture
def data():
    return clouds()


@pytest.fixture
def plan(data):
    return RECIPE.plan(len(data), BUDGET)


class Heard:
    def __init__(self):
        self.numbers, self.marks, self.closed = [], [], False

    def release(self, number):
        self.numbers.append(number)

    def mark(self, mark):
        self.marks.append(mark)

    def close(self):
        self.closed = True


class TestFit:
    def test_it_trains_certifies_and_writes_everything_down(self, data, tmp_path):
        result = discreet.fit(network(), data, RECIPE, BUDGET, public=clouds(seed=1), folder=tmp_path / "run")
        assert accuracy(result.model, data) > 0.9
        assert result.certificate.epsilon <= BUDGET.epsilon
        names = {path.name for path in (tmp_path / "run").iterdir()}
        assert names == {
            *("certificate.html", "certificate.json", "events.jsonl", "metrics.jsonl"),
            *("model.safetensors", "private", "run.json"),
        }

    def test_without_a_folder_it_leaves_nothing_behind_and_certifies_the_same(
        self, data, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        in_memory = discreet.fit(network(), data, RECIPE, BUDGET, seed=1)
        assert list(tmp_path.iterdir()) == []
        on_disk = discreet.fit(network(), data, RECIPE, BUDGET, seed=1, folder="run")
        assert weights(in_memory.model).equal(weights(on_disk.model))
        assert in_memory.certificate == on_disk.certificate

    def test_the_released_file_holds_the_released_weights_and_needs_no_pickle(self, data, tmp_path):
        result = discreet.fit(network(), data, RECIPE, BUDGET, folder=tmp_path / "run")
        other = network()
        other.load_state_dict(load_file(tmp_path / "run" / "model.safetensors"))
        assert weights(other).equal(weights(result.model))

    def test_listeners_hear_every_release_and_the_marks(self, data):
        heard = Heard()
        discreet.fit(network(), data, RECIPE, BUDGET, public=clouds(seed=1), listeners=[heard], marks=5)
        assert heard.numbers == list(range(1, 11))
        assert [mark.release for mark in heard.marks] == [2, 4, 6, 8, 10]
        assert all(mark.accuracy is not None for mark in heard.marks)
        spent = [mark.epsilon for mark in heard.marks]
        assert spent == sorted(spent)
        assert spent[-1] <= BUDGET.epsilon
        assert heard.closed

    def test_the_key_is_gone_when_the_plan_is_complete(self, data, tmp_path):
        discreet.fit(network(), data, RECIPE, BUDGET, folder=tmp_path / "run")
        assert [path.name for path in (tmp_path / "run" / "private").iterdir()] == ["checkpoint.safetensors"]

    def test_the_model_owns_its_weights_afterwards(self, data):
        result = discreet.fit(network(), data, RECIPE, BUDGET)
        first, *others = result.model.parameters()
        assert first.untyped_storage().nbytes() == first.numel() * first.element_size()
        before = [other.clone() for other in others]
        with torch.no_grad():
            first.zero_()
        assert all(now.equal(then) for now, then in zip(others, before, strict=True))


class TestWhatIsReleased:
    def test_it_is_the_last_iterate_and_not_the_best_one(self, data, plan):
        """A learning rate that ruins the model at the end: the best iterate would be an earlier one."""
        ruin = discreet.DPSGD(
            expected_batch_size=50,
            releases=10,
            learning_rate=1.0,
            learning_rate_schedule=discreet.schedules.Exponential(end=1e4),
        )
        run = discreet.start(network(), data, ruin.plan(len(data), BUDGET), seed=2)
        seen = []
        for _ in run:
            with run.released_weights() as model:
                seen.append((accuracy(model, data), weights(model)))
        released = weights(discreet.conclude(run).model)
        assert released.equal(seen[-1][1])
        assert max(seen, key=lambda each: each[0])[0] > seen[-1][0], (
            "the end is not the best: the test has a point"
        )

    def test_it_is_the_average_where_the_recipe_has_one(self, data):
        averaged = discreet.DPSGD(expected_batch_size=50, releases=10, learning_rate=1.0, average=0.5)
        run = discreet.start(network(), data, averaged.plan(len(data), BUDGET), seed=2)
        expected = run.state.parameters.clone()
        for release in run:
            share = 1 - min(0.5, release.number / (release.number + 10))
            expected += share * (run.state.parameters - expected)
        torch.testing.assert_close(weights(discreet.conclude(run).model), expected)


class TestOnesOwnLoop:
    def test_each_turn_is_one_release_that_has_been_charged(self, data, plan, tmp_path):
        run = discreet.start(network(), data, plan, folder=tmp_path / "run")
        for release in run:
            assert release.number <= read_log(tmp_path / "run").charged <= plan.releases
            assert 0 < release.epsilon <= BUDGET.epsilon

    def test_a_run_that_ends_early_is_certified_for_its_whole_plan(self, data, plan, tmp_path):
        run = discreet.start(network(), data, plan, folder=tmp_path / "run")
        for release in run:
            if release.number == 4:
                break
        certificate = discreet.conclude(run).certificate
        assert certificate.ended_early
        assert certificate.releases_executed == 4
        assert certificate.epsilon == pytest.approx(plan.epsilon())
        assert certificate.epsilon_of_what_ran == pytest.approx(plan.epsilon(4))
        assert certificate.epsilon_of_what_ran < certificate.epsilon

    def test_a_run_that_ended_early_can_be_taken_up_again(self, data, plan, tmp_path):
        whole = discreet.start(network(), data, plan, seed=3)
        for _ in whole:
            pass
        run = discreet.start(network(), data, plan, folder=tmp_path / "run", seed=3)
        for release in run:
            if release.number == 4:
                break
        discreet.conclude(run)
        again = discreet.resume(tmp_path / "run", network(), data, plan)
        assert again.state.releases == 4
        for _ in again:
            pass
        assert weights(discreet.conclude(again).model).equal(weights(discreet.conclude(whole).model))

    def test_the_charge_comes_first_even_when_the_release_then_fails(self, data, plan, tmp_path, monkeypatch):
        run = discreet.start(network(), data, plan, folder=tmp_path / "run")

        def broken(*_arguments, **_options):
            raise RuntimeError("out of memory")

        monkeypatch.setattr(run.engine, "clipped_sum", broken)
        with pytest.raises(RuntimeError, match="out of memory"):
            run.release()
        assert read_log(tmp_path / "run").charged >= 1

    def test_charges_are_made_a_few_at_a_time_and_never_beyond_the_plan(self, data, tmp_path):
        recipe = discreet.DPSGD(
            expected_batch_size=50, releases=25, noise_schedule=discreet.schedules.Step(every=20, factor=0.5)
        )
        run = discreet.start(network(), data, recipe.plan(len(data), BUDGET), folder=tmp_path / "run")
        charged = []
        for _ in run:
            charged.append(run.filter.charged)
        assert sorted(set(charged)) == [16, 20, 25]

    def test_a_full_disk_stops_the_release_before_a_record_is_read(self, data, plan, tmp_path, monkeypatch):
        run = discreet.start(network(), data, plan, folder=tmp_path / "run")
        before = run.state.parameters.clone()

        def full(_descriptor):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def not_to_be_read(_indices):
            raise AssertionError("records were read for a release that had not been charged")

        monkeypatch.setattr(os, "fsync", full)
        monkeypatch.setattr(data, "batch", not_to_be_read)
        with pytest.raises(OSError, match="No space"):
            run.release()
        assert run.state.parameters.equal(before)


class TestRefusals:
    def refused(self, tmp_path, complaint, *, model=None, data=None, recipe=RECIPE, budget=BUDGET, loss=None):
        options = {} if loss is None else {"loss": loss}
        with pytest.raises(UserError, match=complaint):
            discreet.fit(
                model or network(), data or clouds(), recipe, budget, folder=tmp_path / "run", **options
            )
        assert not (tmp_path / "run").exists(), "what is refused leaves nothing behind"

    def test_batch_norm(self, tmp_path):
        self.refused(
            tmp_path, "GroupNorm", model=nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        )

    def test_a_layer_that_mixes_records(self, tmp_path):
        class Centred(nn.Module):
            def forward(self, inputs):
                return inputs - inputs.mean(dim=0)

        self.refused(
            tmp_path, "mixes records", model=nn.Sequential(nn.Linear(5, 4), Centred(), nn.Linear(4, 2))
        )

    def test_a_loss_that_mixes_records(self, tmp_path):
        self.refused(tmp_path, "mixes records", loss=nn.functional.cross_entropy)

    def test_a_model_without_trainable_parameters(self, tmp_path):
        self.refused(tmp_path, "no trainable parameters", model=network().requires_grad_(False))

    def test_records_of_one_class(self, tmp_path):
        data = Records.from_arrays(torch.randn(100, 5), torch.zeros(100, dtype=torch.int64), classes=2)
        self.refused(tmp_path, "two classes", data=data)

    def test_batches_larger_than_the_data(self, tmp_path):
        self.refused(tmp_path, "only 200 records", recipe=discreet.DPSGD(expected_batch_size=300))

    def test_an_optimizer_that_does_not_exist(self, tmp_path):
        recipe = discreet.DPOptimizer(expected_batch_size=50, releases=5, torch_optimizer="Wonder")
        self.refused(tmp_path, "Wonder", recipe=recipe)

    def test_a_folder_that_exists_is_left_as_it_is(self, data, tmp_path):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "mine").write_text("precious")
        with pytest.raises(UserError, match="exists already"):
            discreet.fit(network(), data, RECIPE, BUDGET, folder=tmp_path / "run")
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]

    def test_a_plan_for_another_number_of_records(self, plan):
        with pytest.raises(UserError, match="200 records, and there are 100"):
            discreet.start(network(), clouds(100), plan)

    def test_a_delta_that_lets_whole_records_out_is_warned_of(self, data):
        with pytest.warns(UserWarning, match="not below 1/n"):
            discreet.fit(network(), data, RECIPE, discreet.Budget(epsilon=4.0, delta=0.01))

    def test_dropout(self, tmp_path):
        model = nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5), nn.Linear(4, 2))
        self.refused(tmp_path, "draws random numbers", model=model)

    def test_a_layer_of_ones_own_that_draws_random_numbers(self, tmp_path):
        class Jitter(nn.Module):
            def forward(self, inputs):
                return inputs + 0.01 * torch.randn_like(inputs)

        self.refused(tmp_path, "draws random numbers", model=nn.Sequential(Jitter(), nn.Linear(5, 2)))

    def test_dropout_that_never_drops_is_welcome(self, data):
        model = nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.0), nn.Linear(4, 2))
        assert discreet.fit(model, data, RECIPE, BUDGET).certificate.guarantee


class TestAReleaseThatFailsHalfWay:
    class Stumbling(torch.optim.SGD):
        """Moves the weights and then fails, as an interrupt between two lines would."""

        def step(self, closure=None):
            super().step(closure)
            raise KeyboardInterrupt

    @pytest.fixture
    def broken(self, data, plan, tmp_path, monkeypatch):
        run = discreet.start(network(), data, plan, folder=tmp_path / "run", seed=1)
        monkeypatch.setattr(run.state.optimizer, "__class__", self.Stumbling)
        with pytest.raises(KeyboardInterrupt):
            run.release()
        monkeypatch.undo()
        return run

    @pytest.mark.parametrize("go_on", [discreet.Run.release, discreet.Run.save, discreet.conclude])
    def test_it_cannot_be_gone_on_with_saved_or_concluded(self, broken, go_on):
        with pytest.raises(UserError, match="half-way"):
            go_on(broken)

    def test_it_is_made_again_from_the_folder_with_the_same_result(self, broken, data, plan, tmp_path):
        whole = discreet.fit(network(), data, RECIPE, BUDGET, seed=1)
        broken.let_go()
        run = discreet.resume(tmp_path / "run", network(), data, plan)
        for _ in run:
            pass
        assert weights(discreet.conclude(run).model).equal(weights(whole.model))


def test_a_closed_run_makes_no_more_releases(data, plan):
    run = discreet.start(network(), data, plan)
    run.release()
    discreet.conclude(run)
    with pytest.raises(UserError, match="closed"):
        run.release()


class TestRefusalsToResume:
    @pytest.fixture
    def interrupted(self, data, plan, tmp_path):
        run = discreet.start(network(), data, plan, folder=tmp_path / "run", seed=1, checkpoint_seconds=0)
        run.release()
        run.log.close()
        return RunFolder(tmp_path / "run")

    def test_other_settings(self, data, interrupted):
        other = discreet.DPSGD(expected_batch_size=50, releases=10, learning_rate=2.0).plan(len(data), BUDGET)
        with pytest.raises(UserError, match="other settings"):
            discreet.resume(interrupted.path, network(), data, other)

    def test_other_records(self, plan, interrupted):
        with pytest.raises(UserError, match="other records"):
            discreet.resume(interrupted.path, network(), clouds(seed=1), plan)

    def test_records_in_another_order(self, data, plan, interrupted):
        with pytest.raises(UserError, match="other records"):
            discreet.resume(interrupted.path, network(), data.select(torch.arange(199, -1, -1)), plan)

    def test_other_frozen_weights(self, data, plan, tmp_path):
        def half_frozen(seed):
            torch.manual_seed(seed)
            model = network()
            nn.init.normal_(model[0].weight)
            model[0].requires_grad_(False)
            return model

        run = discreet.start(half_frozen(0), data, plan, folder=tmp_path / "half")
        run.let_go()
        with pytest.raises(UserError, match="other frozen weights"):
            discreet.resume(tmp_path / "half", half_frozen(1), data, plan)
        discreet.resume(tmp_path / "half", half_frozen(0), data, plan).let_go()

    @pytest.mark.parametrize(("began", "setting"), [("0" * 32, "on"), ("0" * 32, "off")])
    def test_other_compiled_kernels_unless_that_is_asked_for(
        self, data, plan, interrupted, monkeypatch, began, setting
    ):
        facts = checkpoint.peek(interrupted.checkpoint)
        facts["choices"]["kernels"] = began
        monkeypatch.setattr(checkpoint, "peek", lambda path: facts)
        monkeypatch.delenv("DISCREET_KERNELS", raising=False)
        with pytest.raises(UserError, match="started with compiled kernels that cannot be had"):
            discreet.resume(interrupted.path, network(), data, plan)
        monkeypatch.setenv("DISCREET_KERNELS", setting)
        with pytest.warns(UserWarning, match="last digits"):
            discreet.resume(interrupted.path, network(), data, plan).let_go()

    def test_another_key(self, data, plan, interrupted):
        interrupted.key.unlink()
        discreet.RunKey.secret().save(interrupted.key)
        with pytest.raises(CorruptFile, match="not the key"):
            discreet.resume(interrupted.path, network(), data, plan)

    def test_a_log_that_has_lost_its_end(self, data, plan, interrupted):
        header = interrupted.events.read_bytes().splitlines(keepends=True)[0]
        interrupted.events.write_bytes(header)
        with pytest.raises(CorruptFile, match="lost its end"):
            discreet.resume(interrupted.path, network(), data, plan)

    def test_a_refusal_leaves_the_folder_free_for_the_next_attempt(self, data, plan, interrupted):
        with pytest.raises(UserError):
            discreet.resume(interrupted.path, nn.Linear(5, 2), data, plan)
        discreet.resume(interrupted.path, network(), data, plan).let_go()

    def test_a_run_that_has_ended(self, data, plan, interrupted):
        run = discreet.resume(interrupted.path, network(), data, plan)
        for _ in run:
            pass
        discreet.conclude(run)
        with pytest.raises(UserError, match="has ended"):
            discreet.resume(interrupted.path, network(), data, plan)

    def test_a_folder_that_is_no_run(self, data, plan, tmp_path):
        with pytest.raises(UserError, match="not the folder of a run"):
            discreet.resume(tmp_path, network(), data, plan)

    def test_a_run_that_is_still_going_on(self, data, plan, tmp_path):
        run = discreet.start(network(), data, plan, folder=tmp_path / "busy")
        with pytest.raises(UserError, match="in use by another process"):
            discreet.resume(tmp_path / "busy", network(), data, plan)
        run.log.close()

    @pytest.mark.parametrize("which", ["checkpoint", "events", "settings", "key"])
    def test_a_damaged_file_is_named(self, data, plan, interrupted, which):
        path = getattr(interrupted, which)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x04
        path.write_bytes(bytes(content)[:-3] if which in ("settings", "key") else bytes(content))
        with pytest.raises(CorruptFile, match=path.name):
            discreet.resume(interrupted.path, network(), data, plan)

    def test_a_network_of_another_size(self, data, plan, interrupted):
        with pytest.raises(UserError, match="parameters"):
            discreet.resume(interrupted.path, nn.Linear(5, 2), data, plan)


@pytest.mark.parametrize("setting", ["on", "off"])
def test_a_run_goes_on_with_the_kernels_that_it_began_with(setting, tmp_path, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(200, 3, 8, 8, generator=generator)
    data = Records.from_arrays(images, torch.arange(200) % 2, classes=2, name="images")
    plan = RECIPE.plan(len(data), BUDGET)

    def convolutional():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Flatten(), nn.Linear(8 * 36, 2))

    monkeypatch.setenv("DISCREET_KERNELS", setting)
    interrupted = discreet.start(
        convolutional(), data, plan, folder=tmp_path / "run", seed=1, checkpoint_seconds=0
    )
    facts = interrupted.facts()
    for _ in range(4):
        interrupted.release()
    interrupted.let_go()
    expected = discreet.start(convolutional(), data, plan, seed=1)
    # Timing may choose otherwise the second time; what a run chose is what its resumption has to do.
    expected.engine = GradientEngine(expected.model, cross_entropy, expected.layout, choices=facts["choices"])
    monkeypatch.delenv("DISCREET_KERNELS")
    resumed = discreet.resume(tmp_path / "run", convolutional(), data, plan)
    assert resumed.facts()["choices"] == facts["choices"]
    for run in (expected, resumed):
        for _ in run:
            pass
    assert weights(resumed.model).equal(weights(expected.model))


def test_what_is_written_about_a_run_holds_nothing_read_off_the_records(data, tmp_path):
    """Two data sets that differ in every value give files that differ in noise and time only."""
    kept = []
    for seed in (0, 9):
        folder = RunFolder(tmp_path / str(seed))
        discreet.fit(network(), clouds(seed=seed), RECIPE, BUDGET, folder=folder.path, seed=5)
        marks = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
        for mark in marks:
            del mark["seconds"]
        kept.append(
            (folder.settings.read_text(), folder.events.read_text(), folder.certificate.read_text(), marks)
        )
    assert kept[0] == kept[1]
