import pytest
import torch
from torch import Tensor, nn

from discreet.errors import UserError
from discreet.gradients import FlatClipping


class Centred(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        return inputs - inputs.mean(0, keepdim=True)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, inputs: Tensor) -> Tensor:
        self.seen += inputs.detach().mean()
        return inputs


INPUTS, TARGETS = torch.randn(5, 4), torch.randint(0, 2, (5,))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.BatchNorm1d(4), "use nn.GroupNorm"),
        (nn.SyncBatchNorm(4), "use nn.GroupNorm"),
        (nn.InstanceNorm1d(4, track_running_stats=True), "track_running_stats=False"),
        (Centred(), "loss changes when the other records"),
        (Counting(), "seen changes in the forward pass"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("method", ["auto", "functional", "loop"])
def test_layers_that_mix_records_are_refused_by_name(run, layer, message, method) -> None:
    model = nn.Sequential(nn.Linear(4, 4), layer, nn.Linear(4, 2))
    with pytest.raises(UserError, match=message):
        run(model, INPUTS, TARGETS, method=method)


def test_a_refused_model_keeps_its_buffers(run) -> None:
    counting = Counting()
    with pytest.raises(UserError):
        run(nn.Sequential(nn.Linear(4, 2), counting), INPUTS, TARGETS)
    assert float(counting.seen) == 0


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (nn.CrossEntropyLoss(), "a loss that mixes records"),
        (nn.CrossEntropyLoss(reduction="sum"), "a loss that mixes records"),
        (lambda outputs, targets: outputs, "a loss that mixes records"),
        (lambda outputs, targets: (outputs - outputs.mean(0)).square().sum(1), "loss changes when the other"),
    ],
)
def test_losses_that_mix_records_are_refused(run, loss, message) -> None:
    with pytest.raises(UserError, match=message):
        run(nn.Linear(4, 2), INPUTS, TARGETS, loss=loss)


def test_a_loss_for_each_record_is_accepted(run, cross_entropy) -> None:
    assert run(nn.Linear(4, 2), INPUTS, TARGETS, loss=cross_entropy).total.isfinite().all()


class Jittering(nn.Module):
    """Noise of its own making, which no list of layers knows."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + 0.1 * torch.randn_like(inputs)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.Dropout(0.5), r"1 \(Dropout\) draws random numbers"),
        (nn.RReLU(), r"1 \(RReLU\) draws random numbers"),
        (Jittering(), "draws random numbers in its forward pass"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "fused", "functional", "loop"])
def test_a_model_that_draws_random_numbers_is_refused(run, layer, message, method) -> None:
    with pytest.raises(UserError, match=message):
        run(nn.Sequential(nn.Linear(4, 8), layer, nn.Linear(8, 2)), INPUTS, TARGETS, method=method)


def test_dropout_that_is_switched_off_is_accepted(run) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    assert run(model.eval(), INPUTS, TARGETS).total.isfinite().all()


def test_dropout_that_is_switched_on_later_is_refused_then(run) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2)).eval()
    engine = run(model, INPUTS, TARGETS).engine
    model.train()
    with pytest.raises(UserError, match="draws random numbers"):
        engine.clipped_sum(INPUTS, TARGETS, FlatClipping(clip_norm=1.0), engine.layout.zeros())


def test_the_engine_leaves_the_global_random_state_alone(run) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    before = torch.random.get_rng_state()
    run(model, INPUTS, TARGETS)
    assert torch.equal(torch.random.get_rng_state(), before)
