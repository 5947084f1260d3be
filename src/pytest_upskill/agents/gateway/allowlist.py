"""What of a request is passed on: what its protocol lists, and nothing else.

An agent has no network, and no account but for its one model. A provider must not
search, fetch or run things for it, open what is stored in the account, or answer
faster, more often or with another model than is paid for. Providers add new ways every
month, so each protocol lists what may pass. A list is a form of plain Python values:

- ``{"key": form}``: an object with these keys; other keys are left out
- ``[form]``: a list
- ``("auto", "default")``: one of these values, or a list of them
- a member of ``Leaf``, or one of the classes below
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from .http import Body


class Leaf(Enum):
    """A value without a form of its own."""

    PLAIN = "texts, numbers, true and false, or a list of them"
    DATA = "any JSON that nobody fetches or runs, such as the arguments of a call"
    FLAT = "an object with any keys and plain values"
    SCHEMA = "a JSON schema, without references to other documents"
    NAME = "the name of a tool; a provider's own begin with $"
    ADDRESS = "an address that holds its data, as nothing is fetched"
    BASE64 = "data"


@dataclass(frozen=True)
class Kinds:
    """An object whose ``type`` says what it holds. ``bash_*`` stands
    for every date at its end.
    """

    kinds: Mapping[str, "Form"]
    untyped: "Form | None" = None


@dataclass(frozen=True)
class TextOr:
    """A text, or this form."""

    form: "Form"
    text: Leaf = Leaf.PLAIN


@dataclass(frozen=True)
class Needs:
    """An object that means something else without a key."""

    key: str
    form: "Form"


@dataclass(frozen=True)
class Reaching:
    """Listed only if the case has a network."""

    form: "Form" = Leaf.DATA


@dataclass(frozen=True)
class Content:
    """What a model is to read: a request with anything else in it is refused."""

    form: "Form"


@dataclass(frozen=True)
class Offer:
    """What a model may use. Anything else in it is left out, and the rest goes on."""

    form: "Form"


Form: TypeAlias = (
    Leaf
    | Mapping[str, "Form"]
    | list["Form"]
    | tuple[str | int, ...]
    | Kinds
    | TextOr
    | Needs
    | Reaching
    | Content
    | Offer
)

PLAIN, DATA, FLAT, SCHEMA = Leaf.PLAIN, Leaf.DATA, Leaf.FLAT, Leaf.SCHEMA
NAME, ADDRESS, BASE64 = Leaf.NAME, Leaf.ADDRESS, Leaf.BASE64


def alike(form: Form, *keys: str) -> dict[str, Form]:
    """Keys of the same form."""
    return dict.fromkeys(keys, form)


def plain(*keys: str) -> dict[str, Form]:
    """Keys with plain values."""
    return alike(PLAIN, *keys)


_DATED: Final = re.compile(r"_\d{8}$")
_FETCHED: Final = re.compile(r"https?://\S+", re.IGNORECASE)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=_\s-]*")
_INLINE: Final = re.compile(rf"data:[\w.+/-]*(;[\w.=+-]+)*;base64,{_BASE64.pattern}")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class UnlistedContent(Exception):
    """Why a request is refused; ``is_address`` if the provider would fetch ``name``."""

    def __init__(self, name: str, is_address: bool) -> None:
        super().__init__(name)
        self.name = name
        self.is_address = is_address


class _NotListed(Exception):
    """A value of which nothing is passed on."""

    def __init__(self, name: str, is_address: bool = False) -> None:
        super().__init__(name)
        self.name = name
        self.is_address = is_address


class Allowlist:
    """What a protocol lists. ``key_of`` is for keys that have more than one form."""

    def __init__(
        self, form: Mapping[str, Form], key_of: Callable[[str], str] = str
    ) -> None:
        self._form = form
        self._key_of = key_of

    def passed(self, body: Body, *, network: bool) -> tuple[Body, list[str]]:
        """What of a body is passed on, and names of what is left out.

        UnlistedContent if its content has something that is not listed.
        """
        walk = _Walk(self._key_of, network)
        passed = walk.passed(body, Offer(self._form), "", strict=False)
        return passed or {}, list(filter(None, walk.left_out))


class _Walk:
    def __init__(self, key_of: Callable[[str], str], network: bool) -> None:
        self.left_out = list[str]()
        self._key_of = key_of
        self._network = network

    def passed(self, value: Any, form: Form, name: str, strict: bool) -> Any:
        """What is passed on of a value; _NotListed if nothing is."""
        match form:
            case Leaf():
                return self._leaf(value, form, name)
            case Content():
                return self._content(value, form, name)
            case Offer():
                return self._offer(value, form, name)
            case TextOr():
                chosen = form.text if isinstance(value, str) else form.form
                return self.passed(value, chosen, name, strict)
            case Kinds() if isinstance(value, dict):
                return self._kind(value, form, name, strict)
            case Needs() if isinstance(value, dict) and value.get(form.key) is not None:
                return self.passed(value, form.form, name, strict)
            case list() if isinstance(value, list):
                return self._list_of(value, form[0], name, strict)
            case tuple():
                values = value if isinstance(value, list) else [value]
                for each in values:
                    if each not in form:
                        raise _NotListed(f'{name} "{each}"')
                return value
            case Mapping() if isinstance(value, dict):
                return self._object_of(value, form, name, strict)
        raise _NotListed(f"{name} of a wrong form")

    def _content(self, value: Any, content: Content, name: str) -> Any:
        try:
            return self.passed(value, content.form, name, strict=True)
        except _NotListed as unlisted:
            raise UnlistedContent(unlisted.name, unlisted.is_address) from None

    def _offer(self, value: Any, offer: Offer, name: str) -> Any:
        try:
            return self.passed(value, offer.form, name, strict=False)
        except _NotListed as unlisted:
            self.left_out.append(unlisted.name)
            return []

    def _object_of(
        self, value: Body, form: Mapping[str, Form], name: str, strict: bool
    ) -> Body:
        kept, unlisted_names = Body(), list[str]()
        for key, each in value.items():
            place = f"{name}.{key}" if name else key
            listed = self._listed(form, self._key_of(key))
            if listed is None:
                unlisted_names += [place] if each not in (None, []) else []
            elif each is None:
                kept[key] = None
            else:
                try:
                    kept[key] = self.passed(each, listed, place, strict)
                except _NotListed as unlisted:
                    if strict:
                        raise
                    unlisted_names.append(unlisted.name)
        if value and not kept:
            raise _NotListed(", ".join(filter(None, unlisted_names)))
        self.left_out += unlisted_names
        return kept

    def _list_of(
        self, values: list[Any], form: Form, name: str, strict: bool
    ) -> list[Any]:
        kept = list[Any]()
        for each in values:
            try:
                kept.append(self.passed(each, form, name, strict))
            except _NotListed as unlisted:
                if strict:
                    raise
                self.left_out.append(unlisted.name)
        if values and not kept:
            raise _NotListed("")
        return kept

    def _kind(self, value: Body, form: Kinds, name: str, strict: bool) -> Any:
        kind = value.get("type")
        if kind is None and form.untyped is not None:
            return self.passed(value, form.untyped, name, strict)
        if not isinstance(kind, str):
            raise _NotListed(f"{name} without a type")
        name_of_kind = kind if kind in form.kinds else _DATED.sub("_*", kind)
        listed = self._listed(form.kinds, name_of_kind)
        if listed is None:
            raise _NotListed(kind)
        if isinstance(listed, Mapping):
            listed = {"type": PLAIN, **listed}
        return self.passed(value, listed, name, strict)

    def _leaf(self, value: Any, leaf: Leaf, name: str) -> Any:
        match leaf:
            case Leaf.DATA:
                is_listed = True
            case Leaf.PLAIN:
                values = value if isinstance(value, list) else [value]
                is_listed = not any(isinstance(each, dict | list) for each in values)
            case Leaf.FLAT:
                is_listed = isinstance(value, dict)
                for key, each in value.items() if is_listed else ():
                    self._leaf(each, Leaf.PLAIN, f"{name}.{key}")
            case Leaf.SCHEMA:
                is_listed = isinstance(value, dict | bool)
                _check_references(value, name)
            case Leaf.NAME:
                is_listed = isinstance(value, str)
                if is_listed and value.strip().startswith("$"):
                    raise _NotListed(f'{name} "{value}"')
            case Leaf.BASE64:
                is_listed = isinstance(value, str) and bool(_BASE64.fullmatch(value))
            case Leaf.ADDRESS:
                is_listed = isinstance(value, str) and self._may_be_fetched(value)
                if isinstance(value, str) and not is_listed:
                    raise _NotListed(value, is_address=True)
        if not is_listed:
            raise _NotListed(f"{name} of a wrong form")
        return value

    def _may_be_fetched(self, address: str) -> bool:
        is_fetched = self._network and _FETCHED.fullmatch(address)
        return bool(is_fetched or _INLINE.fullmatch(address))

    def _listed(self, forms: Mapping[str, Form], key: str) -> Form | None:
        form = forms.get(key)
        if isinstance(form, Reaching):
            return form.form if self._network else None
        return form


def _check_references(schema: Any, name: str) -> None:
    """_NotListed if a schema refers to another document."""
    if isinstance(schema, dict):
        for key in _REFERENCES:
            if isinstance(schema.get(key), str) and not schema[key].startswith("#"):
                raise _NotListed(f'{name}.{key} "{schema[key]}"')
    if isinstance(schema, dict | list):
        for each in schema.values() if isinstance(schema, dict) else schema:
            _check_references(each, name)
