"""Frozen dataclasses that are made in a quarter of the time, and some that take little room.

``dataclass(frozen=True)`` compiles six functions for each class, and a small run makes some two
hundred classes. Here ``__init__`` alone is compiled, and the rest is shared. The classes work with
``replace``, ``fields``, ``asdict`` and ``match`` like any dataclass. One that inherits from another
dataclass must be a plain ``dataclass(frozen=True)``.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, Generic, NoReturn, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_T]) -> type[_T]:
    """Make a dataclass whose instances don't change."""
    own = vars(cls).keys()
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    made.__init__ = _init_of(made)
    methods = _comparing(made) if "__eq__" not in own else {}
    for name, method in {"__repr__": _repr, **methods}.items():
        if name not in own:
            setattr(made, name, method)
    made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
    made.__dataclass_params__.frozen = True  # so that a frozen dataclass may inherit from it
    return made  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def compact(cls: type[_T]) -> type[_T]:
    """Make one without a dictionary: a run has thousands of its instances.

    ``values_of`` is what ``vars`` is for others. Nothing can inherit its fields, and its methods
    can't call ``super()``.
    """
    made: Any = frozen(cls)
    names = [one.name for one in fields(made)]
    computed = {name: one for name, one in vars(cls).items() if isinstance(one, once)}
    left_out = {*names, *computed, "__dict__", "__weakref__"}
    body = {name: value for name, value in vars(made).items() if name not in left_out}
    body |= {"__slots__": (*names, *computed), "__getstate__": values_of, "__setstate__": _restore}
    if computed:
        body["__getattr__"] = _computing(computed)
    slotted: type[_T] = type(cls.__name__, cls.__bases__, body)
    return slotted


def values_of(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, in a new dictionary."""
    return {name: getattr(instance, name) for name in instance.__dataclass_fields__}


def _restore(instance: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        object.__setattr__(instance, name, value)


class once(Generic[_T]):
    """A property that is computed once.

    As functools.cached_property, which gives every instance a dictionary: 500 bytes that an
    instance with nothing but its fields does without.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self.compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: object, owner: object = None) -> _T:
        value = self.compute(instance)
        object.__setattr__(instance, self._name, value)  # where it is found first from now on
        return value


def _computing(computed: dict[str, once[Any]]) -> Callable[[Any, str], Any]:
    """Called for what an instance does not have yet."""

    def compute(instance: Any, name: str) -> Any:
        if name not in computed:
            raise AttributeError(f"{type(instance).__name__!r} object has no attribute {name!r}")
        value = computed[name].compute(instance)
        object.__setattr__(instance, name, value)
        return value

    return compute


def _init_of(cls: Any) -> Callable[..., None]:
    scope: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    by_place, by_name, body = ["self"], list[str](), list[str]()
    for one in fields(cls):
        name, given = one.name, one.name
        if one.default_factory is not MISSING:
            scope[f"_make_{name}"] = one.default_factory
            given = f"_make_{name}() if {name} is _MISSING else {name}"
            parameter = f"{name}=_MISSING"
        elif one.default is not MISSING:
            scope[f"_default_{name}"] = one.default
            parameter = f"{name}=_default_{name}"
        else:
            parameter = name
        (by_name if one.kw_only else by_place).append(parameter)
        body.append(f"_set(self, {name!r}, {given})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*by_place, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({parameters}):\n  " + "\n  ".join(body or ["pass"]), scope)
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {**{one.name: one.type for one in fields(cls)}, "return": None}
    return init


def _comparing(cls: Any) -> dict[str, Callable[..., Any]]:
    names = [one.name for one in fields(cls) if one.compare]
    values: Callable[[Any], object] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def hashed(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": equal, "__hash__": hashed}


def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(_: object, name: str, __: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
