"""Values computed from private records that must not be looked at without noise."""

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T", covariant=True)
S = TypeVar("S")


class Private(Generic[T]):
    """A value that depends on private records and has not been noised.

    It cannot be printed, formatted, compared, iterated or pickled, so it does not end up in a log, a progress
    bar or a checkpoint by accident. A mechanism that adds the noise asks for it by name.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal_to_mechanism(self) -> T:
        """The bare value. Whatever is computed from it must be noised and charged before it is released."""
        return self._value

    def map(self, function: "Callable[[T], S]") -> "Private[S]":
        """The function's value at this one, still private."""
        return Private(function(self._value))

    def __repr__(self) -> str:
        return "Private(<hidden>)"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            "a private value cannot be read directly; call reveal_to_mechanism() where noise is added"
        )

    __bool__ = __int__ = __float__ = __len__ = __iter__ = __array__ = __reduce_ex__ = _refuse
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = None  # type: ignore[assignment]
