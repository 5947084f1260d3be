"""Every option has a key in the ini file, in each of pytest's formats."""

import json
import re

import pytest

from pytest_upskill.plugin.pytest_options import OPTIONS
from pytest_upskill.plugin.run_settings import read_settings
from support.kit import case, commit_all, write_script, write_skill
from support.loopback import LoopbackServer, Reply

INI = """
    [pytest]
    skill_paths = skills
    skill_models =
        one
        two
    skill_base_url = {url}
    skill_runs = 2
    skill_tests = more.json
    skill_no_baseline = true
    skill_max_output = 7
    skill_timeout = 33
    skill_concurrency = 1
    skill_json = out.json
    skill_markdown = out.md
    skill_html = out.html
    skill_case_threshold = 0.5
    skill_min_pass_rate = 0.01
    skill_confident = true
    skill_accept = true
    skill_against = main
    skill_no_worse = true
    skill_judge = one
    skill_score = checks
    skill_max_tokens = 100000
    skill_max_cost = 1e9
    skill_fresh = true
    skill_record = answers.jsonl
    skill_max_age = 12h
    skill_references = true
    skill_allow_code = true
    skill_history = false
    skill_prompt_cache = false
    skill_runs_dir = kept
    skill_history_size = 5
    skill_prices =
        one 1000000 0
        two 0 1000000 0
"""
TOML = """
    [tool.pytest]
    skill_paths = ["skills"]
    skill_models = ["one", "two"]
    skill_base_url = "{url}"
    skill_runs = 2
    skill_tests = "more.json"
    skill_no_baseline = true
    skill_max_output = 7
    skill_timeout = 33
    skill_concurrency = 1
    skill_json = "out.json"
    skill_markdown = "out.md"
    skill_html = "out.html"
    skill_case_threshold = 0.5
    skill_min_pass_rate = 0.01
    skill_confident = true
    skill_accept = true
    skill_against = "main"
    skill_no_worse = true
    skill_judge = "one"
    skill_score = "checks"
    skill_max_tokens = 100000
    skill_max_cost = 1e9
    skill_fresh = true
    skill_record = "answers.jsonl"
    skill_max_age = "12h"
    skill_references = true
    skill_allow_code = true
    skill_history = false
    skill_prompt_cache = false
    skill_runs_dir = "kept"
    skill_history_size = 5
    skill_prices = ["one 1000000 0", "two 0 1000000 0"]
"""

OF_AGENTS = """
    [pytest]
    skill_agents =
        chat
        loop
    skill_sandbox = docker
    skill_image = python:3.13
    skill_login = true
    skill_with = other
    skill_max_turns = 5
    skill_agents_at_once = 3
    skill_user_model = cheap
    skill_bundle = true
    skill_allow_network = true
    skill_cluster = tcp://host:8786
    skill_cluster_keys = true
    skill_trigger_runs = 4
    skill_noise = 12
    skill_min_recall = 0.8
    skill_max_false_alarms = 0
"""

# A replay does not go with a recording, nor these gates without a baseline.
APART = """
    [pytest]
    skill_min_lift = 20
    skill_max_token_growth = 0.1
    skill_replay = none.jsonl
    skill_max_age = forever
    skill_accept_lower = true
"""


def test_every_option_has_an_ini_key_under_test() -> None:
    lines = (INI + OF_AGENTS + APART).splitlines()
    written = {line.split("=")[0].strip() for line in lines if "=" in line}
    apart = {"skill_aa"}  # see test_aa.py
    assert {option.ini for option in OPTIONS.values()} == written | apart


def test_help_has_groups_with_the_most_used_options_first(
    pytester: pytest.Pytester,
) -> None:
    text = (
        pytester.runpytest_inprocess("--help")
        .stdout.str()
        .partition("[pytest] configuration")[0]
    )
    parts = re.split(r"^pytest-upskill, (.+):$", text, flags=re.M)[1:]
    flags = [re.findall(r"^  (--[\w-]+)", part, re.M) for part in parts[1::2]]
    shown = dict(zip(parts[::2], flags, strict=True))
    most_used = ["--skill", "--model", "--skill-runs", "--skill-agent", "--skill-html"]
    assert next(iter(shown.items())) == ("most used", most_used)
    groups = [
        "skills and cases",
        "models",
        "agents",
        "answers",
        "budget",
        "grading",
        "gates",
    ]
    assert [*shown][1:] == [*groups, "reports"]
    assert shown["budget"] == ["--skill-max-tokens", "--skill-max-cost"]
    assert len({flag for group in flags for flag in group}) <= 41


def test_options_of_agents_have_ini_keys(pytester: pytest.Pytester) -> None:
    pytester.makeini(OF_AGENTS)
    settings = read_settings(pytester.parseconfig())
    assert settings.agents == ("chat", "loop")
    assert settings.login
    assert (settings.sandbox, settings.image) == ("docker", "python:3.13")
    assert settings.with_skills == (pytester.path / "other",)
    assert (settings.max_turns, settings.agents_at_once) == (5, 3)
    assert (settings.user_model, settings.bundle) == ("cheap", True)
    assert settings.allow_network
    assert (settings.cluster, settings.cluster_send_keys) == ("tcp://host:8786", True)
    assert (settings.trigger_runs, settings.noise) == (4, 12)
    assert (settings.gates.min_recall, settings.gates.max_false_alarms) == (0.8, 0.0)
    given = [
        "--skill-agent",
        "loop",
        "--skill-sandbox",
        "none",
        "--skill-max-turns",
        "7",
    ]
    settings = read_settings(pytester.parseconfig(*given))
    assert (settings.agents, settings.sandbox, settings.max_turns) == (
        ("loop",),
        "none",
        7,
    )


def test_toml_gives_the_same_settings(pytester: pytest.Pytester) -> None:
    url = "http://127.0.0.1:9/v1"
    ini = pytester.makeini(INI.format(url=url))
    settings = read_settings(pytester.parseconfig())
    ini.unlink()
    pytester.makepyprojecttoml(TOML.format(url=url))
    assert read_settings(pytester.parseconfig()) == settings


def test_what_goes_with_few_other_options_has_ini_keys(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini(APART)
    settings = read_settings(pytester.parseconfig())
    assert (settings.gates.min_lift, settings.gates.max_token_growth) == (0.2, 0.1)
    assert settings.replay_file == pytester.path / "none.jsonl"


def test_the_ini_file_is_used_without_an_option(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / "more.json").write_text(
        json.dumps([case("Open?", "yes", id="from-file")])
    )
    with LoopbackServer(lambda _: Reply("yes")) as server:
        pytester.makeini(INI.format(url=f"{server.url}/v1"))
        commit_all(pytester.path)
        pytester.runpytest_inprocess().assert_outcomes(passed=2)
    report = json.loads((pytester.path / "out.json").read_text())
    tried = [
        (record["model"], record["arm"], record["run"]) for record in report["records"]
    ]
    arms = ("previous", "skill")
    assert tried == [
        (m, arm, run) for m in ("one", "two") for run in (1, 2) for arm in arms
    ]
    assert {record["case"] for record in report["records"]} == {"from-file"}
    assert report["skills"][0]["score"] == "checks"
    assert report["base_url"] == f"{server.url}/v1"
    assert (pytester.path / "out.md").read_text().count("| two ") == 1
    accepted = json.loads(
        (pytester.path / "skills/gate/skill_results.json").read_text()
    )
    assert list(accepted) == ["one", "two"]
    assert len((pytester.path / "answers.jsonl").read_text().splitlines()) == 8
    assert [row["skill_cost"] for row in report["summary"]] == [10, 5]  # USD 1 a token
    assert not (pytester.path / "kept").exists()
    assert not (pytester.path / ".upskill/runs").exists()
    assert (pytester.path / "out.html").read_text().startswith("<!doctype html>")
    assert server.most_in_flight == 1
    assert {asked.body["max_tokens"] for asked in server.asked} == {7}


def test_only_skills_below_the_current_folder_are_tested(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "answers.json")  # relative to the ini file
    pytester.makeini(f"[pytest]\nskill_paths = skills\nskill_models = {model}")
    (pytester.path / "sub").mkdir()
    (pytester.path / "sub/test_own.py").write_text("def test_own():\n    pass\n")
    monkeypatch.chdir(pytester.path / "sub")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1)
    assert "upskill:" not in result.stdout.str()
    monkeypatch.chdir(pytester.path / "skills/gate")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1)
    assert "upskill: gate on" in result.stdout.str()


def test_the_command_line_overrides_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nskill_runs = 5\nskill_models = haiku")
    settings = read_settings(
        pytester.parseconfig("--model", "opus", "--skill-runs", "2")
    )
    assert (settings.models, settings.runs) == (("opus",), 2)
