"""The 8 x 8 digits that come with scikit-learn: small, no download."""

from __future__ import annotations

from discreet.data.description import Description
from discreet.data.records import Records, Splits, hold_out
from discreet.errors import UserError

GREATEST_PIXEL = 16.0
HOLDOUT_EVERY = 5


def load() -> Splits:
    """1,797 digits as rows of 64 pixels in [-1, 1]; every fifth record is the declared non-private holdout.

    scikit-learn has no official split of them; a rule on the record's number is public and never changes.
    """
    import torch

    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise UserError("the digits need scikit-learn: pip install 'discreet[digits]'") from error
    pixels, labels = load_digits(return_X_y=True)
    inputs = torch.as_tensor(pixels, dtype=torch.float32) * (2.0 / GREATEST_PIXEL) - 1.0
    targets = torch.as_tensor(labels, dtype=torch.int64)
    description = Description(
        name="digits",
        classes=10,
        class_names=tuple("0123456789"),
        input_shape=(64,),
        schema={"kind": "image", "pixels": "x / 8 - 1"},
        size_is_public=True,
        public_facts=("a published data set: its size, its classes and the form of its images are public",),
    )
    return hold_out(Records(inputs, targets, description), every=HOLDOUT_EVERY)
