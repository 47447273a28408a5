import pytest
import torch
from torch import nn

from discreet.adambc import AdamBC


def one_parameter(start=1.0, size=3):
    return nn.Parameter(torch.full((size,), start, dtype=torch.float64))


def run(optimizer, parameter, gradients, variances=None):
    for step, gradient in enumerate(gradients):
        parameter.grad = gradient.clone()
        if variances is not None:
            optimizer.param_groups[0]["noise_variance"] = variances[step]
        optimizer.step()
    return parameter.detach().clone()


def test_without_noise_it_is_adam_with_its_floor_in_the_second_moment():
    gradients = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours, theirs = one_parameter(), one_parameter()
    moved = run(AdamBC([ours], lr=0.01, floor=1e-30), ours, gradients)
    expected = run(torch.optim.Adam([theirs], lr=0.01, eps=0.0), theirs, gradients)
    torch.testing.assert_close(moved, expected, rtol=1e-12, atol=1e-12)


def test_a_floor_above_everything_makes_it_momentum_sgd():
    gradients = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    parameter, floor = one_parameter(), 1e6
    moved = run(AdamBC([parameter], lr=0.5, floor=floor), parameter, gradients, [3.0] * 20)
    expected, first = torch.full((3,), 1.0, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for step, gradient in enumerate(gradients, start=1):
        first = 0.9 * first + 0.1 * gradient
        expected -= 0.5 / floor**0.5 * first / (1 - 0.9**step)
    torch.testing.assert_close(moved, expected, rtol=1e-12, atol=1e-12)


def test_the_correction_is_the_papers_formula_by_hand():
    gradients = torch.tensor([[2.0], [3.0]], dtype=torch.float64)
    variances, floor, lr = [1.0, 4.0], 1e-8, 0.1
    parameter = one_parameter(size=1)
    moved = run(AdamBC([parameter], lr=lr, betas=(0.5, 0.8), floor=floor), parameter, gradients, variances)
    value, first, second, noise = 1.0, 0.0, 0.0, 0.0
    for step, (gradient, variance) in enumerate(zip((2.0, 3.0), variances, strict=True), start=1):
        first = 0.5 * first + 0.5 * gradient
        second = 0.8 * second + 0.2 * gradient**2
        noise = 0.8 * noise + 0.2 * variance
        value -= lr * first / (1 - 0.5**step) / max((second - noise) / (1 - 0.8**step), floor) ** 0.5
    assert moved.item() == pytest.approx(value, rel=1e-12)


def test_noise_larger_than_the_second_moment_never_gives_a_root_of_a_negative_number():
    parameter = one_parameter()
    moved = run(
        AdamBC([parameter], lr=1e-6), parameter, torch.full((5, 3), 1e-3, dtype=torch.float64), [10.0] * 5
    )
    assert moved.isfinite().all()


@pytest.mark.parametrize("settings", [{"floor": 0.0}, {"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(ValueError, match="is"):
        AdamBC([one_parameter()], **settings)
