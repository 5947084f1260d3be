"""Kinds of sandboxes by name."""

import sys
from typing import Final

from ...errors import Setting, SettingsError
from .sandbox import SandboxKind

NAMES: Final = ("auto", "bwrap", "docker", "podman", "none")


def kind_of(
    name: str, image: str | None = None, *, may_fetch: bool = True
) -> SandboxKind:
    """A kind that works here, or SettingsError.

    ``auto`` never becomes ``none``: that has to be chosen. ``may_fetch``:
    the image of a container.
    """
    if name == "auto":
        return _first_that_works(image or "")
    if name not in NAMES:
        hint = f"Use one of {', '.join(NAMES)}."
        raise SettingsError("sandbox", "no such sandbox", hint, value=name)
    if image and name in ("bwrap", "none"):
        raise SettingsError(
            "image", f"{name} has no image; docker and podman have", value=image
        )
    kind = _kind(name, image or "", may_fetch=may_fetch)
    if problem := kind.why_not():
        raise SettingsError("sandbox", problem, value=name)
    return kind


def _first_that_works(image: str) -> SandboxKind:
    # An image is for containers alone
    has_bwrap = sys.platform == "linux" and not image
    problems = list[str]()
    for name in ("bwrap", "docker", "podman") if has_bwrap else ("docker", "podman"):
        kind = _kind(name, image)
        problem = kind.why_not()
        if problem is None:
            return kind
        problems.append(f"{name}: {problem}")
    raise SettingsError(
        "sandbox",
        "agents need a sandbox, and none works here: " + " ".join(problems),
        (
            Setting("sandbox"),
            (
                " none runs agents without one: they can then read and change all that"
                " you can."
            ),
        ),
        value="auto",
    )


def _kind(name: str, image: str = "", *, may_fetch: bool = True) -> SandboxKind:
    if name == "bwrap":
        from .bwrap import Bwrap

        return Bwrap()
    if name == "none":
        from .unconfined import Unconfined

        return Unconfined()
    from .container import Container

    return Container(name, image, may_fetch=may_fetch)
