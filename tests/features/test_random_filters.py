"""Random filters: the numbers by hand, constants from synthetic images alone, and no record looks at another."""

from __future__ import annotations

import pytest
import torch

from discreet.errors import UserError
from discreet.features import RandomFilters, build, random_filters
from discreet.features.dead_leaves import dead_leaves
from discreet.features.random_filters import _made_public

SMALL = {"filters": 5, "side": 4, "grid": 2}


@pytest.fixture(autouse=True)
def _fewer_synthetic_images(monkeypatch):
    for name in ("_FOR_FILTERS", "_FOR_MOMENTS"):
        monkeypatch.setattr(random_filters, name, 200)
    yield
    _made_public.cache_clear()


def by_hand(image, public, settings):
    """The responses of one image, place by place."""
    _, height, width = image.shape
    high, wide = height - settings.side + 1, width - settings.side + 1
    responses = torch.empty(2 * settings.filters, high, wide)
    for row in range(high):
        for column in range(wide):
            patch = image[:, row : row + settings.side, column : column + settings.side]
            contrast = (patch.var(unbiased=False) + 0.01).sqrt()
            normal = (patch - patch.mean()) / contrast
            for number, one in enumerate(public.filters):
                found = float((one * normal).sum())
                responses[number, row, column] = max(found - settings.threshold, 0.0)
                responses[settings.filters + number, row, column] = max(-found - settings.threshold, 0.0)
    cells = []
    for row in range(
        settings.grid
    ):  # a place of the grid averages from floor to ceiling, as torch's pooling does
        for column in range(settings.grid):
            rows = slice(row * high // settings.grid, -(-(row + 1) * high // settings.grid))
            columns = slice(column * wide // settings.grid, -(-(column + 1) * wide // settings.grid))
            cells.append(responses[:, rows, columns].mean(dim=(1, 2)))
    return torch.stack(cells, dim=1).reshape(-1, settings.grid, settings.grid)


def test_responses_are_thresholded_products_with_normalised_patches_averaged_over_places():
    settings = RandomFilters(**SMALL, threshold=0.5)
    public = _made_public(settings, 3, 9, 8)
    images = dead_leaves(3, 3, 9, 8, seed=5)
    expected = torch.stack([by_hand(image, public, settings) for image in images])
    torch.testing.assert_close(public._responses(images), expected, rtol=1e-4, atol=1e-5)


def test_rows_have_norm_one_and_the_mirrored_image_has_the_same_ones():
    public = _made_public(RandomFilters(**SMALL), 1, 9, 9)
    images = dead_leaves(6, 1, 9, 9, seed=5)
    rows = public(images)
    torch.testing.assert_close(rows.flatten(1).norm(dim=1), torch.ones(6))
    torch.testing.assert_close(public(images.flip(-1)), rows, rtol=1e-4, atol=1e-5)
    alone = _made_public(RandomFilters(**SMALL, mirrored=False), 1, 9, 9)
    assert not torch.allclose(alone(images.flip(-1)), alone(images), atol=1e-2)


def test_the_features_of_a_record_do_not_depend_on_the_others(some_images):
    records = some_images(channels=3)
    function = RandomFilters(**SMALL).made_for(records.description)
    together = function(records.batch(torch.arange(12))[0])
    alone = torch.cat([function(records.batch(torch.tensor([i]))[0]) for i in range(12)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-6)


def test_whitening_evens_out_the_channels_of_synthetic_images():
    def spread(whitening):
        public = _made_public(RandomFilters(**SMALL, whitening=whitening), 1, 12, 12)
        rows = public(dead_leaves(400, 1, 12, 12, seed=99)).transpose(0, 1).flatten(1)
        values = torch.linalg.eigvalsh(rows @ rows.T)
        return float(values[-1] / values[len(values) // 2])

    assert spread(0.05) < 0.5 * spread(0.0)


def test_the_constants_are_functions_of_the_seed_alone():
    settings = RandomFilters(**SMALL, seed=3)
    first = _made_public(settings, 1, 10, 10)
    _made_public.cache_clear()
    torch.manual_seed(123)
    again = _made_public(settings, 1, 10, 10)
    torch.testing.assert_close(first.filters, again.filters)
    torch.testing.assert_close(first.whitener, again.whitener)
    other = _made_public(RandomFilters(**SMALL, seed=4), 1, 10, 10)
    assert not torch.allclose(first.filters, other.filters, atol=1e-2)


def test_a_black_image_gives_finite_features(some_images):
    function = RandomFilters(**SMALL).made_for(some_images().description)
    assert bool(function(torch.full((2, 1, 12, 12), -1.0)).isfinite().all())


def test_dead_leaves_are_images_whose_pixels_resemble_their_neighbours():
    images = dead_leaves(200, 3, 16, 16, seed=0)
    assert images.shape == (200, 3, 16, 16)
    assert 0.0 <= float(images.min()) < 0.1 < 0.9 < float(images.max()) <= 1.0
    assert torch.equal(images, dead_leaves(200, 3, 16, 16, seed=0))
    pixels = images - images.mean()

    def resemblance(apart):
        return float((pixels[..., apart:] * pixels[..., :-apart]).mean() / pixels.square().mean())

    assert 0.8 > resemblance(1) > resemblance(3) > resemblance(8) > 0.0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"filters": 0}, "filters is 0; it has to be at least 1"),
        ({"threshold": -1.0}, "threshold is -1.0"),
        ({"whitening": float("inf")}, "whitening is inf"),
        ({"mirrored": "yes"}, "mirrored is 'yes'"),
        ({"fliters": 3}, "no option 'fliters'"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong, told):
    with pytest.raises(UserError, match=told):
        build("random-filters", wrong)


def test_images_too_small_and_other_records_are_refused(some_images):
    with pytest.raises(UserError, match="too small for filters of 6 pixels"):
        RandomFilters().made_for(some_images(side=7).description)
    from discreet.data import Records

    table = Records.from_arrays(torch.zeros(4, 3), torch.arange(4) % 2, classes=2)
    with pytest.raises(UserError, match="is for images"):
        RandomFilters().made_for(table.description)
