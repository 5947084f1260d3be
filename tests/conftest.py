"""Fixtures for all tests."""

import asyncio
import importlib.metadata
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.browser import Page
    from support.chromium import Chromium
    from support.firefox import Firefox
    from support.shell import Shell

# Development tools are imported inside the fixtures: pytest loads this file for `make
# demo` too, and there they are not installed.

# Dask's backport takes the place of what finds plugins in sys.meta_path.
# If a run inside pytester were the first to import it, no later run in
# this process would find any.
with suppress(ImportError):
    import importlib_metadata  # noqa: F401

# pytester forgets what a run inside it imports first,
# and cryptography can't be imported twice.
with suppress(ImportError):
    import cryptography.hazmat.primitives.asymmetric.rsa  # noqa: F401
    import cryptography.hazmat.primitives.serialization  # noqa: F401
    import cryptography.x509  # noqa: F401

PREFIXES = (
    "ANTHROPIC_",
    "OPENAI_",
    "OPENROUTER_",
    "HF_",
    "GENERIC_",
    "OLLAMA_",
    "OTEL_",
    "GITHUB_",
)
NAMES = (
    "PYTEST_UPSKILL_MODEL",
    "UPSKILL_CONFIG",
    "PYTEST_ADDOPTS",
    "COLUMNS",
    "NO_COLOR",
    "CI",
)
# Seconds for one test. A test of the gate takes two at most, and
# at a load of 12 some ten times as long.
TIMEOUT = 60
NIGHTLY_TIMEOUT = 600
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import HealthCheck, settings

        # The gate tries the same few examples each time, so it can't fail by chance,
        # and no profile fails because the machine is busy.
        patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.register_profile(
            "gate", patient, max_examples=25, derandomize=True, database=None
        )
        settings.register_profile("nightly", patient, max_examples=300)
        settings.load_profile("gate")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """No test can hang: it fails after the limit, with the stacks of all threads.

    Not in the ini file, where pytest would refuse the key if
    pytest-timeout isn't installed.
    """
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                is_nightly = item.get_closest_marker("nightly")
                seconds = NIGHTLY_TIMEOUT if is_nightly else TIMEOUT
                item.add_marker(pytest.mark.timeout(seconds))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Property tests are not measured: they run hundreds of times,
    which tracing makes slow.
    """
    measured = None
    if item.get_closest_marker("hypothesis") and "coverage" in sys.modules:
        measured = sys.modules["coverage"].Coverage.current()
    if measured:
        measured.stop()
    try:
        return (yield)
    finally:
        if measured:
            measured.start()


@pytest.fixture(scope="session")
def slow_imports() -> None:
    """Import what is slow, once: pytester drops the modules that a
    run in this process imports.
    """
    import anthropic  # noqa: F401
    import genai_prices.data  # noqa: F401
    import httpx2
    import hypothesis  # noqa: F401
    import jsonschema  # noqa: F401
    import openai  # noqa: F401
    import regex  # noqa: F401

    import pytest_upskill.models.local  # noqa: F401
    import pytest_upskill.models.scripted  # noqa: F401
    import pytest_upskill.plugin.closing  # noqa: F401
    import pytest_upskill.plugin.collecting  # noqa: F401
    import pytest_upskill.plugin.finishing  # noqa: F401

    async def load_what_http_loads_late() -> None:
        async with httpx2.AsyncClient() as client:
            with suppress(httpx2.ConnectError):
                await client.get("http://127.0.0.1:9")

    asyncio.run(load_what_http_loads_late())


@pytest.fixture(autouse=True)
def clean_environment(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hide the keys, servers and settings of the person who runs the tests."""
    for name in list(os.environ):
        if name.startswith(PREFIXES) or name in NAMES:
            monkeypatch.delenv(name)
    # Most look for sentences, unwrapped
    folder = request.path.parent
    if folder.name in ("plugin", "cli") or folder.parent.name == "features":
        monkeypatch.setenv("COLUMNS", "200")
    # pytester gives each test a home of its own; the embedded
    # model is fetched only once.
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))


@pytest.fixture(autouse=True)
def forgotten_keys() -> Iterator[None]:
    """Keys that a test told are masked in this process, but not in other tests."""
    yield
    if keys := sys.modules.get("pytest_upskill._util.keys"):
        keys._learnt.clear()


@pytest.fixture(scope="session")
def plugin_packages() -> list[importlib.metadata.Distribution]:
    """Installed packages that have xdist and our own plugin."""
    return [
        package
        for package in importlib.metadata.distributions()
        if {"xdist", "upskill"} & package.entry_points.select(group="pytest11").names
    ]


@pytest.fixture
def pytester(
    slow_imports: None,  # noqa: ARG001
    plugin_packages: list[importlib.metadata.Distribution],
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> pytest.Pytester:
    """With xdist and our own plugin alone: to look for others
    takes a third of a short run.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist -p upskill")
    monkeypatch.setattr("importlib.metadata.distributions", lambda: plugin_packages)
    return pytester


@pytest.fixture(params=["0", pytest.param("2", marks=pytest.mark.nightly)])
def workers(request: pytest.FixtureRequest) -> str:
    """The value of ``-n``: a test that asks for it runs in one process,
    and nightly in two more.

    A test that is about processes says ``-n 2`` itself.
    """
    return str(request.param)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry almost at once."""
    monkeypatch.setattr("pytest_upskill.engine.pace._FIRST_PAUSE", 0.01)


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first question of a model go alone for as long
    as a busy machine may need.
    """
    monkeypatch.setattr("pytest_upskill.engine.pace.ALONE", 30.0)


@pytest.fixture
def shell(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> "Shell":
    from support.shell import Shell

    return Shell(pytester, monkeypatch, capsys)


@pytest.fixture
def bwrap() -> None:
    """Skip the test without bubblewrap; see ``support.sandboxes.needs_bwrap``."""
    from support.sandboxes import require_bwrap

    require_bwrap()


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither docker nor podman can be found."""
    from support.fake_docker import forget_programs, hide_programs

    hide_programs(monkeypatch)
    yield
    forget_programs()


@pytest.fixture
def docker(
    bwrap: None,  # noqa: ARG001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """A docker that works, and the file that logs how it is called."""
    from support.fake_docker import forget_programs, use_docker

    yield use_docker(tmp_path / "docker", monkeypatch)
    forget_programs()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chromium]":
    from support.chromium import Chromium

    with closing(Chromium(tmp_path_factory.mktemp("chromium"))) as browser:
        yield browser


@pytest.fixture(scope="session")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Firefox]":
    from support.firefox import Firefox

    with closing(Firefox(tmp_path_factory.mktemp("firefox"))) as browser:
        yield browser


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of a ``Page`` runs in both browsers, one of a
    ``ChromiumPage`` in Chromium only.

    Firefox is for the night.
    """
    own = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "page" in metafunc.fixturenames and "page" not in own:  # a page of the docs
        only = getattr(metafunc.function.__annotations__.get("page"), "__module__", "")
        second = pytest.param("firefox", marks=pytest.mark.nightly)
        browsers = ["chromium"] if only == "support.chromium" else ["chromium", second]
        metafunc.parametrize("page", browsers, indirect=True)


@pytest.fixture
def page(request: pytest.FixtureRequest) -> "Iterator[Page]":
    """A tab of a browser."""
    page = request.getfixturevalue(request.param).new_page()
    page.size(1280)
    yield page
    page.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The HTML page of a typical run."""
    from support.pages import readable_run, write_page

    notes = ["144 of 288 answers from cache (saved $0.34); --skill-fresh asks again."]
    return write_page(readable_run(), tmp_path_factory.mktemp("report"), notes)
