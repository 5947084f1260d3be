"""The tests on other Pythons, and with the oldest and the newest of what we depend on.

``make test`` is the gate on one Python; a session here runs its tests on another one.
"""

import re
import sys

import nox

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROJECT = nox.project.load_toml("pyproject.toml")
# No browser, no real agents, and nothing that takes long.
SUBSET = (
    *(
        "_util",
        "checks",
        "engine",
        "lint",
        "measure",
        "models",
        "reports",
        "results",
        "skills",
    ),
    *("stats", "trials", "plugin", "test_errors.py"),
)

nox.needs_version = ">=2025.5"
nox.options.sessions = ["tests", "oldest", "newest"]
nox.options.error_on_missing_interpreters = False


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """On each Python."""
    _install(session)
    _test(session)


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """With the oldest versions that pyproject.toml allows: pytest, xdist, SDKs,
    all others.
    """
    # create_tmp() moves TMPDIR into the checkout
    pins = session.cache_dir.resolve() / "oldest.txt"
    pins.write_text("\n".join(floors()) + "\n")
    _install(session, "--constraint", str(pins))
    _test(session)


@nox.session(python=PYTHONS[-1] if sys.version_info >= (3, 14) else None)
def newest(session: nox.Session) -> None:
    """With the newest versions, also where pyproject.toml does not allow them yet."""
    _install(session)
    names = [re.split(r"[><=]", one)[0] for one in PROJECT["project"]["dependencies"]]
    session.install("--upgrade", "--no-deps", *names)
    _test(session)


def floors() -> list[str]:
    """``pytest>=9`` is ``pytest==9``; extras don't belong into constraints."""
    found = []
    for requirement in PROJECT["project"]["dependencies"]:
        name, _, rest = requirement.partition(">=")
        found.append(f"{name.partition('[')[0]}=={rest.partition(',')[0]}")
    return found


def _install(session: nox.Session, *options: str) -> None:
    tools = nox.project.dependency_groups(PROJECT, "test")
    session.install(*options, ".[local]", *tools)


def _test(session: nox.Session) -> None:
    session.run("python", "-m", "pip", "list", silent=not session.posargs)
    chosen = session.posargs or [f"tests/{name}" for name in SUBSET]
    session.run("pytest", "-q", "-n", "2", "-m", "not nightly", *chosen)
