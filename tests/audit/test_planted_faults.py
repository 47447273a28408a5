"""Faults planted one at a time, and the check that catches each. docs/audits.md has the same names in a table."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from discreet import conclude, start
from discreet import plan as plan_module
from discreet.accounting import Budget
from discreet.audit.canaries import CanaryRecords
from discreet.audit.game import CanaryGame, play
from discreet.data import Records
from discreet.errors import UserError
from discreet.gates.gate import Verdict
from discreet.gates.loss_test import LossTest
from discreet.gates.scores import LossChange
from discreet.gradients import engine as engine_module
from discreet.gradients import weighing
from discreet.gradients.clipping import FlatClipping, LayerClipping
from discreet.gradients.weighing import Weighing
from discreet.noise import gaussian as gaussian_module
from discreet.noise.key import RunKey
from discreet.recipes import DPSGD, DPSUR
from discreet.sampling import PoissonSampler
from discreet.training import run as run_module
from discreet.training.trials import Trials
from discreet.training.undo import Undo

EXAMPLES = 120
ROOMY = Budget(epsilon=500.0, delta=1e-3)
PAGE = Path(__file__).parents[2] / "docs" / "audits.md"


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    torch.set_num_threads(1)


def records():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(EXAMPLES, 3, generator=generator)
    return Records.from_arrays(inputs, torch.arange(EXAMPLES) % 2, classes=2)


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def begin(recipe=None, model=None, **options):
    recipe = recipe or DPSGD(expected_batch_size=30, releases=40, noise_multiplier=1.0)
    return start(model or network(), records(), recipe.plan(EXAMPLES, ROOMY), **{"seed": 3, **options})


SELECTIVE = DPSUR(
    expected_batch_size=30,
    releases=400,
    noise_multiplier=1.0,
    gate_batch_size=30,
    gate_clip=0.01,
    learning_rate=0.3,
    momentum=0.7,
)


# The checks. Each gives True where all is well.


def canaries() -> bool:
    """The certificate is not refuted by thousands of canaries in one run."""
    recipe = DPSGD(expected_batch_size=1050, releases=6)
    game = CanaryGame(
        recipe=recipe,
        budget=Budget(epsilon=4.0, delta=1e-5),
        canaries=4000,
        records=200,
        confidence=0.999,
        seed=7,
    )
    return not play(game).refuted


def noise() -> bool:
    """Sums of empty batches are noise: of the planned scale, normal, new in every release and every coordinate."""
    run = begin(model=nn.Linear(3, 2 * 40_000))
    object.__setattr__(run.plan.sampler, "rate", 1e-9)
    seen = []
    for number in range(2):
        run.private_gradient(number)
        planned = run.plan.noise.multiplier_at(number) * run.plan.clipping.rule.sensitivity
        seen.append(run.state.gradient.double() * run.plan.sampler.expected_batch_size / planned)
    first, second = (each.numpy() for each in seen)
    size = len(first)
    chunk = gaussian_module._CHUNK
    correlations = [np.corrcoef(first, second)[0, 1], np.corrcoef(first[:-chunk], first[chunk:])[0, 1]]
    return bool(
        abs(first.std() - 1) < 5 / np.sqrt(2 * size)
        and max(np.abs(correlations)) < 5 / np.sqrt(size - chunk)
        and stats.kstest(first, "norm").pvalue > 1e-6
    )


def sampling() -> bool:
    """Batches have binomial sizes, and overlap from one release to the next as independent ones do."""
    key, sampler = RunKey.from_seed(1), PoissonSampler(examples=400, rate=0.1)
    table = np.zeros((400, 400), dtype=bool)
    for number in range(400):
        table[number, sampler.draw(key.stream("batch", number)).numpy()] = True
    sizes = table.sum(1)
    dispersion = 399 * sizes.var(ddof=1) / (400 * 0.1 * 0.9)
    again = (table[1:] & table[:-1]).mean() / 0.01
    return bool(
        stats.chi2(399).ppf(1e-5) < dispersion < stats.chi2(399).ppf(1 - 1e-5)
        and abs(sizes.mean() - 40) < 5 * np.sqrt(36 / 400)
        and abs(again - 1) < 5 / np.sqrt(table[1:].size * 0.01)
    )


def influence() -> bool:
    """No record moves the sum by more than the sensitivity, and one that is not a number does not at all."""
    run, largest = begin(), 0.0
    inputs, targets = records().batch(torch.arange(20))
    for rule in (FlatClipping(clip_norm=0.5), LayerClipping(clip_norm=0.5)):
        for scale in (1.0, 1e4, float("nan")):
            extreme = torch.cat([inputs[:19], scale * inputs[19:]])
            sums = []
            for kept in (19, 20):
                run.engine.clipped_sum(extreme[:kept], targets[:kept], rule, run.state.gradient)
                sums.append(run.state.gradient.double().clone())
            moved = float(torch.linalg.vector_norm(sums[1] - sums[0]))
            largest = max(largest, float("inf") if np.isnan(moved) else moved)
    return largest <= 0.5 * (1 + 1e-5)


def divisor() -> bool:
    """A release is the clipped sum with its noise over the public expected size of the batch."""
    run = begin()
    indices = run.plan.sampler.draw(run.key.stream("batch", 0))
    expected = torch.zeros_like(run.state.gradient)
    run.engine.clipped_sum(*run.batch(indices), run.plan.clipping.rule, expected)
    run_module.add_gaussian_(
        expected, run.plan.noise.multiplier * run.plan.clipping.rule.sensitivity, run.key.stream("noise", 0)
    )
    run.private_gradient(0)
    return bool(torch.allclose(run.state.gradient, expected / 30.0, rtol=0, atol=1e-6))


def microbatches() -> bool:
    """A batch that is split is summed to the last record."""
    inputs, targets = records().batch(torch.arange(50))
    sums = []
    for size in (None, 7):
        run = begin(microbatch=size)
        run.engine.clipped_sum(inputs, targets, FlatClipping(clip_norm=0.5), run.state.gradient)
        sums.append(run.state.gradient.clone())
    return bool(torch.allclose(*sums, rtol=1e-4, atol=1e-5))


def rollback() -> bool:
    """After three rejected trials weights, optimizer, average and reference are as before, to the last bit."""

    class Scripted(LossTest):
        def judge(self, trial):
            trial.propose()
            return Verdict(
                accepted=trial.number < 2, score=float(trial.number), reference=float(trial.number)
            )

    plan = replace(SELECTIVE, average=0.9).plan(EXAMPLES, ROOMY)
    gate = plan.selecting.gate
    scripted = Scripted(change=gate.change, noise_multiplier=1.3, threshold=-1.0)
    plan = replace(plan, selecting=replace(plan.selecting, gate=scripted))
    run = start(network(), records(), plan, seed=3)

    def state():
        memory = [
            entry.numpy().tobytes()
            for leaf in run.state.optimizer.state.values()
            for entry in leaf.values()
            if torch.is_tensor(entry)
        ]
        tensors = run.state.parameters.numpy().tobytes(), run.state.average.numpy().tobytes()
        return tensors, memory, run.state.selection.reference

    for _ in range(2):
        run.release()
    before = state()
    for _ in range(3):
        run.release()
    return state() == before


def charges() -> bool:
    """After each trial of a run with a gate, rejected or not, as many are charged as were made, and it can conclude."""
    run = begin(replace(SELECTIVE, releases=40))
    for _ in range(40):
        run.release()
        if run.filter.charged < run.state.releases:
            return False
    try:
        conclude(run)
    except ValueError:
        return False
    return True


def acceptance() -> bool:
    """Candidates of the best possible score pass as often as the accountant assumes at most, and no more."""
    run = begin(replace(SELECTIVE, gate_threshold=-0.5))
    gate, event = run.plan.selecting.gate, run.plan.event(0)
    huge = SimpleNamespace(
        phase=run.state.selection.phase,
        stream=lambda purpose: run.key.stream(purpose, huge.number),
        losses=lambda indices: engine_module.Private(torch.full((len(indices),), 1e6 - 1e9 * huge.moved)),
        propose=lambda: setattr(huge, "moved", 1),
        number=0,
        moved=0,
    )
    passed = 0
    for number in range(2000):
        huge.number, huge.moved = number, 0
        passed += gate.judge(huge).accepted
    return stats.binomtest(passed, 2000, event.highest_acceptance).pvalue > 1e-5


def independent_validation() -> bool:
    """The gate's batch shares records with the training batch as often as chance has it."""
    run, shared, drawn = begin(SELECTIVE), 0, 0
    trials = run._trials
    for number in range(60):
        trials._number = number
        training = set(run.plan.sampler.draw(run.key.stream("batch", number, 0)).tolist())
        gate = run.plan.selecting.gate.change.sampler.draw(trials.stream("gate batch")).tolist()
        shared, drawn = shared + len(training & set(gate)), drawn + len(gate)
    return stats.binomtest(shared, drawn, 0.25).pvalue > 1e-5


class Centred(nn.Module):
    """Takes the batch's mean off every record."""

    def forward(self, inputs):
        return inputs - inputs.mean(0, keepdim=True)


def refusal() -> bool:
    """A network whose layers mix records is refused before anything is charged."""
    try:
        begin(model=nn.Sequential(nn.Linear(3, 4), Centred(), nn.Linear(4, 2)))
    except UserError:
        return True
    return False


def honest_certificate() -> bool:
    """A run whose noise can be computed again from a seed carries no guarantee."""
    run = begin(DPSGD(expected_batch_size=30, releases=2, noise_multiplier=1.0))
    for _ in run:
        pass
    return not conclude(run).certificate.guarantee


CHECKS = [
    canaries,
    noise,
    sampling,
    influence,
    divisor,
    microbatches,
    rollback,
    charges,
    acceptance,
    independent_validation,
    refusal,
    honest_certificate,
]


# The faults.

FAULTS = {}


@dataclass(frozen=True)
class Fault:
    plant: object
    caught_by: object


def fault(name, *, caught_by):
    def keep(plant):
        FAULTS[name] = Fault(plant=plant, caught_by=caught_by)
        return plant

    return keep


def wrapped(patch, owner, name, around):
    """Put `around(right, *arguments)` in the place of a function."""
    right = getattr(owner, name)

    def instead(*arguments, **options):
        return around(right, *arguments, **options)

    patch.setattr(owner, name, instead)


@fault("noise scaled by 0.8", caught_by=noise)
def _(patch):
    wrapped(patch, run_module, "add_gaussian_", lambda right, v, s, stream: right(v, 0.8 * s, stream))


@fault("noise scaled by 0.5", caught_by=canaries)
def _(patch):
    wrapped(patch, run_module, "add_gaussian_", lambda right, v, s, stream: right(v, 0.5 * s, stream))


@fault("no noise for an empty batch", caught_by=noise)
def _(patch):
    wrapped(
        patch, run_module, "add_gaussian_", lambda right, v, s, stream: right(v, s, stream) if v.any() else v
    )


@fault("uniform noise of the right variance", caught_by=noise)
def _(patch):
    def uniform(stream, count):
        words = (stream.words(count) & (2**63 - 1)).double() * 2.0**-63
        return (words - 0.5) * 12**0.5

    patch.setattr(gaussian_module, "standard_normal", uniform)


def the_same_in_every_release(patch, what):
    wrapped(
        patch,
        RunKey,
        "stream",
        lambda right, self, purpose, release, trial=0: right(
            self, purpose, 0 if purpose == what else release, trial
        ),
    )


@fault("the same noise in every release", caught_by=noise)
def _(patch):
    the_same_in_every_release(patch, "noise")


@fault("the same noise in every chunk of a vector", caught_by=noise)
def _(patch):
    right = gaussian_module.standard_normal
    kept = {}

    def again(stream, count):
        if id(stream) not in kept:
            kept.clear()
            kept[id(stream)] = right(stream, gaussian_module._CHUNK)
        return kept[id(stream)][:count].clone()

    patch.setattr(gaussian_module, "standard_normal", again)


@fault("norms that are too small by a tenth", caught_by=influence)
def _(patch):
    right = weighing.round_up
    patch.setattr(weighing, "round_up", lambda squared, dtype: 0.9 * right(squared, dtype))


@fault("norms that are too small by half", caught_by=canaries)
def _(patch):
    right = weighing.round_up
    patch.setattr(weighing, "round_up", lambda squared, dtype: 0.5 * right(squared, dtype))


@fault("each layer clipped to the whole norm", caught_by=influence)
def _(patch):
    def each_whole(self, norms):
        return (self.clip_norm / norms.clamp_min(1e-30)).clamp(max=1.0)

    patch.setattr(LayerClipping, "weights", each_whole)
    patch.setattr(weighing, "_SLACK", 10.0)


@fault("a gradient that is not a number is let through", caught_by=influence)
def _(patch):
    def careless(self, squared):
        norms = weighing.round_up(squared, self.layout.dtype)
        return norms.nan_to_num(nan=1.0, posinf=1.0), self.rule.weights(norms.nan_to_num(nan=1.0, posinf=1.0))

    patch.setattr(Weighing, "weigh", careless)


@fault("shuffled batches of a fixed size", caught_by=sampling)
def _(patch):
    def shuffled(self, stream):
        return stream.words(self.examples).argsort()[: round(self.rate * self.examples)].sort().values

    patch.setattr(PoissonSampler, "draw", shuffled)


@fault("every other record sampled twice as often", caught_by=sampling)
def _(patch):
    def uneven(self, stream):
        threshold = torch.full((self.examples,), int(min(1.0, 2 * self.rate) * (2**63 - 1)))
        threshold[1::2] = int(self.rate * (2**63 - 1))
        return (stream.words(self.examples) & (2**63 - 1)).lt(threshold).nonzero().squeeze(1)

    patch.setattr(PoissonSampler, "draw", uneven)


@fault("all records in every batch", caught_by=canaries)
def _(patch):
    patch.setattr(PoissonSampler, "draw", lambda self, stream: torch.arange(self.examples))


@fault("the same batch in every release", caught_by=sampling)
def _(patch):
    the_same_in_every_release(patch, "batch")


@fault("division by the size of the batch that was drawn", caught_by=divisor)
def _(patch):
    def realised(self, number, trial=0, *, noise=1.0):
        rule = self.plan.clipping.at(number, self.plan.releases)
        indices = self.plan.sampler.draw(self.key.stream("batch", number, trial))
        report = self.engine.clipped_sum(*self.batch(indices), rule, self.state.gradient)
        run_module.add_gaussian_(
            self.state.gradient, self._stddev(number, noise), self.key.stream("noise", number, trial)
        )
        self.state.gradient.div_(len(indices))
        return report

    patch.setattr(run_module.Run, "private_gradient", realised)


@fault("the last part of a batch dropped", caught_by=microbatches)
def _(patch):
    wrapped(patch, engine_module, "_parts", lambda right, size, most: list(right(size, most))[:-1])


def tell_the_accountant(patch, *, rate=1.0, noise=1.0):
    """Plan events whose sampling rate and noise are so many times the true ones."""
    right = plan_module.PoissonGaussian
    patch.setattr(
        plan_module,
        "PoissonGaussian",
        lambda sample_rate, noise_multiplier: right(
            sample_rate=rate * sample_rate, noise_multiplier=noise * noise_multiplier
        ),
    )


@fault("the accountant is told half the sampling rate", caught_by=canaries)
def _(patch):
    tell_the_accountant(patch, rate=0.5)


@fault("the accountant is told twice the noise", caught_by=canaries)
def _(patch):
    tell_the_accountant(patch, noise=2.0)


@fault("only every third release is counted", caught_by=canaries)
def _(patch):
    right = plan_module.Plan.charges
    patch.setattr(
        plan_module.Plan,
        "charges",
        lambda self, releases=None: [(event, max(1, count // 3)) for event, count in right(self, releases)],
    )
    patch.setattr(run_module.Run, "_charge", lambda self, number: None)


@fault("a trial that is rejected is not charged", caught_by=charges)
def _(patch):
    wrapped(
        patch,
        run_module.Run,
        "_charge",
        lambda right, self, number: (
            right(self, number) if number == 0 or self.state.updates == self.state.releases else None
        ),
    )


@fault("weights are not rolled back", caught_by=rollback)
def _(patch):
    patch.setattr(Undo, "back", lambda self: None)


@fault("momentum is not rolled back", caught_by=rollback)
def _(patch):
    patch.setattr(Undo, "back", lambda self: self._parameters.copy_(self._kept))


@fault("a rejected trial moves the reference", caught_by=rollback)
def _(patch):
    def remembering(right, self):
        verdict = right(self)
        self._selection.reference = verdict.reference
        return verdict

    wrapped(patch, Trials, "_try", remembering)


@fault("a rejected trial enters the average", caught_by=rollback)
def _(patch):
    def averaging(right, self):
        verdict = right(self)
        self._run.state.average.lerp_(self._run.state.gradient, 0.1)
        return verdict

    wrapped(patch, Trials, "_try", averaging)


@fault("a gate with half its noise", caught_by=acceptance)
def _(patch):
    wrapped(patch, LossChange, "noisy", lambda right, self, trial, noise: right(self, trial, 0.5 * noise))


@fault("a gate whose metric is not clipped", caught_by=acceptance)
def _(patch):
    patch.setattr(LossChange, "_clipped_mean", lambda self, changes: float(changes.mean()) / self.bound)


@fault("a gate that looks at the training batch", caught_by=independent_validation)
def _(patch):
    wrapped(
        patch,
        Trials,
        "stream",
        lambda right, self, purpose: right(self, "batch" if purpose == "gate batch" else purpose),
    )


@fault("a record that is there three times", caught_by=canaries)
def _(patch):
    def repeated(right, self, indices):
        (inputs, tokens), targets = right(self, indices)
        copies = torch.where(tokens > 0, 3, 1)
        return (inputs.repeat_interleave(copies, 0), tokens.repeat_interleave(copies)), (
            targets.repeat_interleave(copies)
        )

    wrapped(patch, CanaryRecords, "batch", repeated)


@fault("memory fed with sums before their noise", caught_by=canaries)
def _(patch):
    def leaking(right, self, inputs, targets, rule, out):
        report = right(self, inputs, targets, rule, out)
        kept = vars(self).setdefault("kept", torch.zeros_like(out))
        kept += out
        out += kept
        return report

    wrapped(patch, engine_module.GradientEngine, "clipped_sum", leaking)


@fault("batch statistics in the network", caught_by=refusal)
def _(patch):
    patch.setattr(engine_module, "refuse_mixing_modules", lambda model: None)
    patch.setattr(engine_module, "probe_independence", lambda *arguments: None)


@fault("a seeded run that calls itself secret", caught_by=honest_certificate)
def _(patch):
    patch.setattr(RunKey, "is_secret", property(lambda self: True))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_without_a_fault_the_check_passes(check):
    assert check()


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_caught(name, monkeypatch):
    FAULTS[name].plant(monkeypatch)
    assert not FAULTS[name].caught_by()


def table() -> dict[str, str]:
    rows = re.findall(r"^\| (.+?) \| `(\w+)` \|", PAGE.read_text(), flags=re.MULTILINE)
    return dict(rows)


def test_the_page_lists_every_fault_with_its_check_and_no_other():
    assert table() == {name: each.caught_by.__name__ for name, each in FAULTS.items()}


def test_every_check_catches_something():
    assert {each.caught_by for each in FAULTS.values()} == set(CHECKS)
    assert len(FAULTS) >= 20
