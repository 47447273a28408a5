"""What a feature map is: a function that was fixed before anybody looked at the records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.typed import require_types

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.data import Description


@dataclass(frozen=True, kw_only=True)
class FeatureMap(ABC):
    """A public function from the input of one record to its features.

    **Guarantee.** The features of a record are a function of that record and of public constants. Adding or removing
    a record leaves those of all others as they were, so neighbouring data sets stay neighbouring, and nothing is
    charged. Whoever writes a map keeps this; `apply` hands it records in blocks, for speed only.
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    def __post_init__(self) -> None:
        require_types(self)

    @abstractmethod
    def made_for(self, form: Description) -> Callable[[Tensor], Tensor]:
        """The function for records of this form: from a block of inputs to one row of features each, as float32.

        Raises:
            UserError: records of this form have no such features.
        """

    def schema(self) -> Mapping[str, Any]:
        """The map as part of a data set's schema: its name and every constant."""
        return {"features": self.name, **asdict(self)}
