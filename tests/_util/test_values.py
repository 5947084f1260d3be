"""Frozen values: as frozen dataclasses in all that is used of these, but cheaper to make."""

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import pytest

from pytest_upskill._util.values import compact, frozen, once, values_of


def made(title: str, decorate: Callable[[type], type], computed: Callable[..., Any]) -> Any:
    """The same class by any decorator."""

    class Lamp:
        """A lamp."""

        name: str
        lit: bool = False
        notes: list[str] = field(default_factory=list, compare=False)
        secret: str = field(default="", repr=False, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "name", self.name.strip())

        @computed
        def size(self) -> int:
            """How long its name is."""
            self.notes.append("measured")
            return len(self.name)

    Lamp.__name__ = Lamp.__qualname__ = title
    return decorate(Lamp)


Lamp = made("Lamp", frozen, cached_property)
PlainLamp = made("PlainLamp", dataclass(frozen=True), cached_property)
CompactLamp = made("CompactLamp", compact, once)


@dataclass(frozen=True)
class Lantern(Lamp):  # type: ignore[misc, valid-type]
    """What a user may derive."""

    handle: bool = True


USES: dict[str, Callable[[Any], object]] = {
    "repr": lambda kind: repr(kind(" a ", True, secret="s")).partition("(")[2],
    "equal": lambda kind: kind("a") == kind(" a", False, ["note"]),
    "unequal": lambda kind: (kind("a") == kind("b"), kind("a") == "a", kind("a") != kind("a")),
    "hash": lambda kind: hash(kind("a", secret="x")) == hash(kind("a", notes=[""], secret="x")),
    "in a set": lambda kind: len({kind("a"), kind("a "), kind("b")}),
    "asdict": lambda kind: asdict(kind("a", notes=["x"])),
    "astuple": lambda kind: astuple(kind("a")),
    "replaced": lambda kind: asdict(replace(kind("a", secret="s"), name=" b ")),
    "fields": lambda kind: [(one.name, one.default, one.compare) for one in fields(kind)],
    "own lists": lambda kind: kind("a").notes is kind("a").notes,
    "copied": lambda kind: copy.deepcopy(kind("a")) == kind("a"),
    "pickled": lambda kind: (
        pickle.loads(pickle.dumps(kind("a", secret="s"))) == kind("a", secret="s")
    ),
    "matched": lambda kind: kind.__match_args__,
    "parameters": lambda kind: [
        (one.name, one.kind, one.annotation) for one in inspect.signature(kind).parameters.values()
    ],
    "frozen": lambda kind: kind.__dataclass_params__.frozen,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", [Lamp, CompactLamp])
def test_a_frozen_value_is_like_a_frozen_dataclass(kind: type, use: str) -> None:
    assert USES[use](kind) == USES[use](PlainLamp)


def test_a_compact_value_has_no_dictionary_and_computes_once() -> None:
    lamp = CompactLamp("ab", secret="s")
    assert not hasattr(lamp, "__dict__")
    assert (lamp.size, lamp.size, lamp.notes) == (2, 2, ["measured"])
    assert replace(lamp, name="abc").size == 3
    assert pickle.loads(pickle.dumps(lamp)).size == 2
    assert values_of(lamp) == asdict(lamp)
    with pytest.raises(FrozenInstanceError, match="field 'lit'"):
        lamp.lit = True
    with pytest.raises(AttributeError, match="'CompactLamp' object has no attribute 'colour'"):
        lamp.colour  # noqa: B018


@pytest.mark.parametrize(
    "change", [lambda one: setattr(one, "lit", True), lambda one: delattr(one, "lit")]
)
def test_no_field_can_be_changed(change: Callable[[object], None]) -> None:
    lamp = Lamp("a")
    with pytest.raises(FrozenInstanceError, match="field 'lit'"):
        change(lamp)
    assert lamp.lit is False
    assert lamp.size == 1  # a cached property works all the same


@pytest.mark.parametrize("wrong", [{}, {"name": "a", "colour": 1}])
def test_wrong_arguments_are_told_as_usual(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"Lamp\.__init__\(\)"):
        Lamp(**wrong)


def test_a_dataclass_may_inherit_from_a_frozen_value() -> None:
    lantern = Lantern(" a", handle=False)
    assert (lantern.name, lantern.handle, lantern.size) == ("a", False, 1)
    assert lantern != Lamp("a")
    with pytest.raises(FrozenInstanceError):
        lantern.handle = True  # type: ignore[misc]


def test_methods_of_the_class_itself_are_kept() -> None:
    @frozen
    class Named:
        """Equal by its first letter."""

        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and self.name[0] == other.name[0]

        def __hash__(self) -> int:
            return hash(self.name[0])

        def __repr__(self) -> str:
            return self.name

    assert Named("ab") == Named("ac")
    assert len({Named("ab"), Named("ac")}) == 1
    assert repr(Named("ab")) == "ab"


def test_what_is_computed_once_is_kept_without_a_dictionary() -> None:
    computed = []

    @frozen
    class Text:
        """A text."""

        text: str

        @once
        def size(self) -> int:
            """How long it is."""
            computed.append(self.text)
            return len(self.text)

    one = Text("abc")
    assert (one.size, one.size, replace(one, text="d").size) == (3, 3, 1)
    assert computed == ["abc", "d"]
    assert one == Text("abc")
