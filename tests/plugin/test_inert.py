"""The plugin does nothing until a skill is given, and loads only what it needs."""

import json

import pytest

from support.kit import write_script, write_skill
from support.runs import run_skills

LOADED = """
    import json
    import sys

    def pytest_unconfigure(config):
        names = ("anthropic", "openai", "pydantic", "yaml", "asyncio", "xllamacpp")
        names += ("genai_prices", "httpx2", "aiohttp", "regex", "jsonschema")
        loaded = [name for name in sys.modules
                  if name in names or name[:14] == "pytest_upskill"]
        (config.rootpath / "loaded.json").write_text(json.dumps(sorted(loaded)))
"""


# What the tests' environment has, and what loads a few of these itself.
OTHERS = ("-p", "no:hypothesispytest", "-p", "no:anyio")


def loaded(pytester: pytest.Pytester) -> list[str]:
    names: list[str] = json.loads((pytester.path / "loaded.json").read_text())
    return names


def test_without_skills_nothing_is_collected_loaded_or_printed(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeconftest(LOADED)
    pytester.makepyfile(test_other="def test_other(): pass")
    result = pytester.runpytest_subprocess(*OTHERS)
    result.assert_outcomes(passed=1)
    assert loaded(pytester) == [
        "pytest_upskill",
        "pytest_upskill.errors",
        "pytest_upskill.options",
        "pytest_upskill.plugin",
        "pytest_upskill.plugin.hookspecs",
        "pytest_upskill.plugin.pytest_options",
        "pytest_upskill.plugin.skill_args",
        "pytest_upskill.plugin.skill_code",
        "pytest_upskill.registry",
        "pytest_upskill.settings",
    ]
    shown = [
        line
        for line in result.outlines
        if not line.startswith(("plugins:", "rootdir:"))
    ]
    assert "skill" not in "\n".join(shown)


HEAVY = {"anthropic", "openai", "xllamacpp", "aiohttp", "regex", "jsonschema"}


@pytest.fixture(autouse=True)
def found_by_entry_point(
    pytester: pytest.Pytester,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As users have the plugin."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_ADDOPTS")


def test_a_scripted_model_needs_no_sdk(pytester: pytest.Pytester, workers: str) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeconftest(LOADED)
    model = write_script(pytester.path / "a.json")
    run = run_skills(pytester, model, "-n", workers, *OTHERS, subprocess=True)
    assert run.status == 0
    assert not set(loaded(pytester)) & {*HEAVY, "genai_prices", "httpx2"}


def test_modules_of_a_run_come_from_bytecode(pytester: pytest.Pytester) -> None:
    """Else each is compiled anew where no bytecode may be written."""
    write_skill(pytester.path / "skills/gate")
    pytester.makeconftest(
        """
        import sys

        def pytest_unconfigure(config):
            modules = {name: type(module.__loader__).__name__
                       for name, module in sys.modules.items()
                       if name.startswith("pytest_upskill.trials")}
            assert set(modules.values()) == {"SourceFileLoader"}, modules
        """
    )
    model = write_script(pytester.path / "a.json")
    assert run_skills(pytester, model, *OTHERS, subprocess=True).status == 0


@pytest.mark.nightly
def test_no_sdk_is_loaded_to_collect(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeconftest(LOADED)
    run = run_skills(pytester, "haiku", "--collect-only", subprocess=True)
    assert run.status == 0
    assert not set(loaded(pytester)) & HEAVY


def test_an_option_without_a_skill_is_reported_as_ignored(
    pytester: pytest.Pytester, workers: str
) -> None:
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_inprocess("--skill-json", "r.json", "--skill-runs", "2")
    result.assert_outcomes(passed=1)
    assert (
        "upskill: --skill-runs, --skill-json ignored: add --skill PATH"
        in result.outlines
    )
    result = pytester.runpytest_inprocess("--model", "haiku", "-n", workers)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["upskill: no skill tested: add --skill PATH, or *"])


@pytest.mark.parametrize("option", ["--help", "--markers"])
def test_help_and_markers_work_whatever_the_settings_say(
    pytester: pytest.Pytester, option: str
) -> None:
    pytester.makeini("[pytest]\nskill_paths = nowhere\nskill_models = nobody")
    assert pytester.runpytest_inprocess(option).ret == 0
