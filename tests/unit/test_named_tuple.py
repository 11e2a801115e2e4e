"""Our named tuples behave like typing's: everything here is asserted of both."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing
from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest

from barnabas.named_tuple import NamedTuple

NO_WORDS: Mapping[str, int] = {}


class Own(NamedTuple):
    """Has a docstring."""

    number: int
    name: str | None = None
    """The name."""
    words: Mapping[str, int] = NO_WORDS

    @property
    def double(self) -> int:
        return 2 * self.number

    @classmethod
    def of(cls, text: str) -> Own:
        return cls(int(text), text)


class Typings(typing.NamedTuple):
    """Has a docstring."""

    number: int
    name: str | None = None
    """The name."""
    words: Mapping[str, int] = NO_WORDS

    @property
    def double(self) -> int:
        return 2 * self.number

    @classmethod
    def of(cls, text: str) -> Typings:
        return cls(int(text), text)


class OwnNothing(NamedTuple):
    pass


class TypingsNothing(typing.NamedTuple):
    pass


class OwnDerived(Own):
    __slots__ = ()
    extra: int = 3

    def __new__(cls, number: int) -> OwnDerived:
        return super().__new__(cls, number, "derived")

    def __str__(self) -> str:
        return f"{self.name} {self.number + self.extra}"


both = pytest.mark.parametrize("kind", [Own, Typings])


@both
def test_constructors_and_reading(kind: Any) -> None:
    made = kind(1, words={"a": 1}, name="n")
    assert made == (1, "n", {"a": 1}) == tuple(made)
    assert (made.number, made.name, made.words, made[1], made.double) == (
        *(1, "n", {"a": 1}),
        *("n", 2),
    )
    assert kind(1) == (1, None, NO_WORDS) == kind(number=1)
    assert kind.of("12") == (12, "12", {})
    number, *others = made
    assert (number, others) == (1, ["n", {"a": 1}])
    assert isinstance(made, tuple) and type(made) is kind
    assert hash(kind(1, "n", 3)) == hash((1, "n", 3))


@both
@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3, 4), {}), ((1,), {"number": 1})])
def test_wrong_arguments_are_type_errors(kind: Any, values: Any, named: Any) -> None:
    with pytest.raises(TypeError):
        kind(*values, **named)
    with pytest.raises(TypeError):
        kind(1, other=2)


def test_the_first_call_may_fail_and_the_next_succeeds() -> None:
    class Pair(NamedTuple):
        x: int
        y: int

    with pytest.raises(TypeError):
        Pair(1)  # type: ignore[call-arg]
    assert Pair(1, 2).y == 2


@both
def test_methods_of_named_tuples(kind: Any) -> None:
    made = kind(1, "n")
    assert made._replace(name="m") == (1, "m", {})
    assert type(made._replace(name="m")) is kind
    with pytest.raises(ValueError, match="other"):
        made._replace(other=1)
    assert made._asdict() == {"number": 1, "name": "n", "words": {}}
    assert kind._make([1, 2, 3]) == (1, 2, 3)
    with pytest.raises(TypeError):
        kind._make([1, 2])
    assert kind._fields == kind.__match_args__ == ("number", "name", "words")
    assert repr(made) == f"{kind.__name__}(number=1, name='n', words={{}})"
    assert kind.__doc__ == "Has a docstring."
    assert get_type_hints(kind) == {
        "number": int,
        "name": str | None,
        "words": Mapping[str, int],
    }
    parameters = inspect.signature(kind.__new__).parameters
    assert list(parameters) == ["_cls", "number", "name", "words"]


@both
def test_copies_pickles_and_patterns(kind: Any) -> None:
    made = kind(1, "n")
    for each in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert each == made and type(each) is kind
    match made:
        case kind(number, name):
            assert (number, name) == (1, "n")
        case _:
            pytest.fail("no match")


@both
def test_nothing_can_be_set_or_deleted(kind: Any) -> None:
    made = kind(1)
    for name in ("number", "name", "other"):
        with pytest.raises(AttributeError):
            setattr(made, name, 2)
        with pytest.raises(AttributeError):
            delattr(made, name)
    assert made == (1, None, {})


@pytest.mark.parametrize("kind", [OwnNothing, TypingsNothing])
def test_without_items(kind: Any) -> None:
    assert kind() == ()
    assert repr(kind()) == f"{kind.__name__}()"
    with pytest.raises(TypeError):
        kind(1)


def test_a_derived_class_has_the_same_items() -> None:
    made = OwnDerived(1)
    assert made == (1, "derived", {})
    assert (OwnDerived._fields, str(made), made.extra) == (Own._fields, "derived 4", 3)
    # The constructor of the named tuple itself is still its own.
    assert Own(2) == (2, None, {})
