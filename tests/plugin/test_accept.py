"""--skill-accept, and what later runs make of accepted results."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.kit import case, ending, gates, write_script, write_skill

MODEL = "scripted:fake.py:answer"
FAKE = """
import json
from pathlib import Path

def answer(question):
    passes = json.loads(Path(__file__).with_name("passes.json").read_text())
    name = question.messages[-1][1].split()[0]
    good = "SKILL" in question.system and question.run <= passes[name]
    return "yes" if good else "no"
"""


class Project:
    """A skill whose cases pass in as many runs as said."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.folder = pytester.path / "skills/gate"
        self.file = self.folder / "skill_results.json"
        (pytester.path / "fake.py").write_text(FAKE)

    def write(self, *cases: str, **more: Any) -> None:
        written = [case(f"{name} is it?", "yes", id=name, **more) for name in cases]
        write_skill(self.folder, written, body="SKILL: say yes.")

    def run(
        self, passes: dict[str, int], *args: str, runs: int | str = 1, skill: bool = True
    ) -> pytest.RunResult:
        (self.pytester.path / "passes.json").write_text(json.dumps(passes))
        which = ["--skill", "skills"] if skill else ["test_gate.py"]
        common = [*which, "--model", MODEL, "--skill-runs", str(runs)]
        return self.pytester.runpytest_inprocess(*common, *args)

    def accepted(self, model: str = MODEL) -> Any:
        return json.loads(self.file.read_text())["models"][model]


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def test_accept_writes_the_results_and_passes(project: Project, workers: str) -> None:
    project.write("b", "a")
    result = project.run({"a": 5, "b": 1}, "--skill-accept", workers, runs=5)
    assert result.parseoutcomes() == {"passed": 1, "xfailed": 1}
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [f"gate on {MODEL}: accepted 2 cases in", "skills/gate/skill_results.json"]
    )
    accepted = project.accepted()
    assert accepted["model_id"]
    assert len(accepted["skill_digest"]) == len(accepted["cases"]["a"]["case_digest"]) == 12
    numbers = {
        name: (c["passes"], c["runs"], c["baseline_passes"], c["tokens"] > 0)
        for name, c in accepted["cases"].items()
    }
    assert list(numbers.items()) == [("a", (5, 5, 0, True)), ("b", (1, 5, 0, True))]


def test_a_case_accepted_as_failing_xfails(project: Project, workers: str) -> None:
    project.write("a", "b")
    project.run({"a": 5, "b": 1}, "--skill-accept", runs=5)
    result = project.run({"a": 5, "b": 0}, workers, "-rx", runs=5)
    assert result.parseoutcomes() == {"passed": 1, "xfailed": 1}
    assert result.ret == 0
    result.stdout.fnmatch_lines(["XFAIL *::b* - accepted as failing on 20??-??-?? (1 of 5)"])
    assert gates(result) == []


def test_a_single_run_that_fails_after_passing_is_a_regression(
    project: Project, workers: str
) -> None:
    project.write("a", "b")
    project.run({"a": 1, "b": 1}, "--skill-accept")
    result = project.run({"a": 0, "b": 1}, workers, "--skill-json", "r.json")
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    assert result.ret == 1
    message = "0 of 1 passed (accepted: 1 of 1, 20??-??-??)"
    result.stdout.fnmatch_lines(
        [
            f'regression: {message}: "yes" is not in the answer',
            "FAILED *::a* - regression: *",
        ]
    )
    assert gates(result)[0].startswith(f"gate on {MODEL}: regression: a: 0 of 1 passed (accepted")
    gate = json.loads((project.pytester.path / "r.json").read_text())["gate"]
    assert gate["passed"] is False
    assert len(gate["reasons"]) == 1


def test_a_flaky_case_is_reported_but_is_no_regression(project: Project, workers: str) -> None:
    project.write("a", "b")
    project.run({"a": 5, "b": 5}, "--skill-accept", runs=5)
    result = project.run({"a": 2, "b": 5}, workers, "-rx", "--skill-json", "r.json", runs=5)
    assert result.parseoutcomes() == {"passed": 1, "xfailed": 1}
    assert result.ret == 0
    message = "2 of 5 passed (accepted: 5 of 5, 20??-??-??)"
    result.stdout.fnmatch_lines([f"XFAIL *::a* - {message}; could be chance"])
    result.stdout.fnmatch_lines(["*below accepted; could be chance*"])
    gate = json.loads((project.pytester.path / "r.json").read_text())["gate"]
    assert gate == {"passed": True, "reasons": []}


def test_a_case_that_fell_by_evidence_fails_in_its_worker(project: Project, workers: str) -> None:
    project.write("a", "b")
    project.run({"a": 8, "b": 8}, "--skill-accept", runs=8)
    result = project.run({"a": 0, "b": 8}, workers, runs=8)
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    assert result.ret == 1


NAMES = [f"c{number}" for number in range(12)]


def junit(project: Project) -> dict[str, str]:
    """What JUnit has of each test."""
    found = {}
    for one in ElementTree.parse(project.pytester.path / "junit.xml").iter("testcase"):
        kinds = [child.tag for child in one if child.tag != "properties"]
        found[str(one.get("name")).partition("[")[0]] = ",".join(kinds) or "passed"
    return found


def test_a_regression_that_only_holm_shows_fails_its_test(project: Project, workers: str) -> None:
    """One case of twelve broke: too little for Bonferroni, enough for Holm with Tarone."""
    project.write(*NAMES)
    well = dict.fromkeys(NAMES, 5)
    project.run(well, "--skill-accept", runs=5)
    result = project.run({**well, "c7": 0}, workers, "--junitxml=junit.xml", runs=5)
    assert result.parseoutcomes() == {"passed": 11, "failed": 1}
    assert result.ret == 1
    assert gates(result)[-1].startswith(f"gate on {MODEL}: regression: c7: 0 of 5")
    assert junit(project) == {**dict.fromkeys(NAMES, "passed"), "c7": "failure"}
    again = project.run({**well, "c7": 0}, workers, "--lf", runs=5)
    again.stdout.fnmatch_lines(["*ran only 1 of 12 cases*"])
    assert again.parseoutcomes() == {"failed": 1}
    fixed = project.run(well, workers, "--lf", runs=5)
    assert fixed.ret == 0


def test_a_collapse_fails_every_case_that_fell(project: Project, workers: str) -> None:
    """None of these cases is a regression alone: 4 of 5 became 0 of 5, and one did not fall."""
    names = NAMES[:9]
    project.write(*names)
    project.run(dict.fromkeys(names, 4), "--skill-accept", runs=5)
    now = {**dict.fromkeys(names, 0), "c4": 5}
    result = project.run(now, workers, "--junitxml=junit.xml", "--skill-json", "r.json", runs=5)
    assert result.parseoutcomes() == {"passed": 1, "failed": 8}
    assert result.ret == 1
    assert junit(project) == {**dict.fromkeys(names, "failure"), "c4": "passed"}
    shown = " ".join(result.stdout.str().split())
    whole = "regression of the skill as a whole"
    assert f"{whole}: 0 of 5 passed (accepted: 4 of 5, 20" in shown
    assert "could be chance" not in shown
    reasons = json.loads((project.pytester.path / "r.json").read_text())["gate"]["reasons"]
    numbers = "5 of 45 runs passed (accepted: 36 of 45, p = 4.2e-12)"
    assert reasons == [f"gate on {MODEL}: {whole}: {numbers}"]
    again = project.run(now, workers, "--lf", runs=5)
    assert again.parseoutcomes() == {"failed": 8}


def test_a_skill_that_got_worse_overall_fails_cases_that_still_pass(project: Project) -> None:
    project.write(*NAMES)
    project.run(dict.fromkeys(NAMES, 5), "--skill-accept", runs=5)
    result = project.run({**dict.fromkeys(NAMES, 4), "c1": 5}, runs=5)
    assert result.parseoutcomes() == {"passed": 1, "failed": 11}
    assert result.ret == 1
    whole = "regression of the skill as a whole: 49 of 60 runs passed (accepted: 60 of 60, p ="
    assert whole in gates(result)[-1]
    few = project.run({**dict.fromkeys(NAMES, 4), "c1": 5}, "-k", "c2 or c3", runs=5)
    assert (few.parseoutcomes(), few.ret) == ({"passed": 2, "deselected": 10}, 0)


def test_a_stopped_run_tells_the_same(project: Project) -> None:
    names = ["a", "b", "c"]
    project.write(*names)
    project.run(dict.fromkeys(names, 3), "--skill-accept", runs=3)
    result = project.run(dict.fromkeys(names, 0), "-x", "--skill-json", "r.json", runs=3)
    assert result.parseoutcomes() == {"failed": 1}
    shown = " ".join(result.stdout.str().split())
    assert "a: regression of the skill as a whole: 0 of 3 passed (accepted: 3 of 3" in shown
    assert "could be chance" not in shown
    written = json.loads((project.pytester.path / "r.json").read_text())
    assert [bool(test["regression"]) for test in written["tests"]] == [True, False, False]


def test_a_missing_answer_is_left_out_of_the_decision(project: Project) -> None:
    names = ["a", "b", "c", "d"]
    project.write(*names)
    project.run(dict.fromkeys(names, 3), "--skill-accept", runs=3)
    result = project.run(dict.fromkeys(names[:3], 0), runs=3)  # the model knows no d
    assert result.parseoutcomes() == {"failed": 3, "errors": 1}


def test_frugal_runs_decide_over_the_runs_that_are_made(project: Project) -> None:
    """After three runs the verdict is clear, and 2 of 3 is no evidence; 2 of 12 would be."""
    project.write(*NAMES[:8])
    project.run(dict.fromkeys(NAMES, 12), "--skill-accept", runs=12)
    now = {**dict.fromkeys(NAMES, 12), "c3": 2}
    result = project.run(now, runs="3..12")
    assert (result.parseoutcomes(), result.ret) == ({"passed": 8}, 0)
    result = project.run({**dict.fromkeys(NAMES, 2), "c3": 3}, runs="3..12")
    assert result.parseoutcomes() == {"passed": 1, "failed": 7}


def test_better_results_show_how_to_accept_them(project: Project, workers: str) -> None:
    project.write("a", "b")
    project.run({"a": 1, "b": 0}, "--skill-accept")
    result = project.run({"a": 1, "b": 1}, workers)
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    text = " ".join("\n".join(result.outlines).split())
    assert f"gate on {MODEL}: better than accepted: b: 1 of 1 passed (accepted: 0 of 1, 20" in text
    assert f"next: pytest --skill skills --model {MODEL} --skill-runs 1 {workers}" in text
    project.run({"a": 1, "b": 1}, "--skill-accept")
    assert project.accepted()["cases"]["b"]["passes"] == 1
    assert "better than" not in project.run({"a": 1, "b": 1}).stdout.str()


def test_new_and_changed_cases_have_no_accepted_result(project: Project, workers: str) -> None:
    project.write("a", "b")
    project.run({"a": 1, "b": 1}, "--skill-accept")
    project.write("a", "c")
    changed = json.loads((project.folder / "skill_meta.json").read_text())
    changed["cases"][0]["expected"]["contains"] = ["yes", "please"]
    (project.folder / "skill_meta.json").write_text(json.dumps(changed))
    result = project.run({"a": 1, "c": 1}, workers)
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*no accepted result yet: c.*"])
    assert "regression" not in result.stdout.str()
    assert [line.partition(f"{MODEL}: ")[2] for line in gates(result)] == [
        "accepted, but gone from the file: b (1 of 1); "
        "undo that, or accept the results of this run",
        "changed since accepted: a (1 of 1); undo that, or accept the results of this run",
    ]


def edit(project: Project, **keys: dict[str, Any]) -> None:
    """Change cases in their file, each by name."""
    file = project.folder / "skill_meta.json"
    cases = json.loads(file.read_text())["cases"]
    file.write_text(json.dumps({"cases": [{**one, **keys.get(one["id"], {})} for one in cases]}))


@pytest.mark.parametrize("narrow", [["-k", "b"], ["--deselect", "skills/gate/skill_meta.json::a"]])
def test_a_case_that_was_deselected_is_not_gone(project: Project, narrow: list[str]) -> None:
    project.write("a", "b", "c")
    project.run(dict.fromkeys("abc", 1), "--skill-accept")
    project.write("a", "b")
    result = project.run(dict.fromkeys("abc", 1), *narrow)
    assert (gates(result), result.ret) == ([], 0)
    assert len(gates(project.run(dict.fromkeys("abc", 1)))) == 1


def test_an_accepted_case_that_passes_trivially_now_fails_the_run(project: Project) -> None:
    project.write("a", "b")
    project.run({"a": 1, "b": 1}, "--skill-accept")
    edit(project, a={"expected": {"not_contains": ["maybe"]}})
    result = project.run({"a": 0, "b": 1}, "-q")
    assert result.parseoutcomes() == {"passed": 2}
    assert result.ret == 1
    assert "changed since accepted: a (1 of 1)" in gates(result)[0]
    text = " ".join(result.stdout.str().split())
    assert "next: pytest --skill skills" in text
    project.run({"a": 0, "b": 1}, "--skill-accept")
    assert project.run({"a": 0, "b": 1}).ret == 0


def test_accepted_cases_that_are_all_skipped_fail_the_run(project: Project, workers: str) -> None:
    project.write("a", "b", "c")
    passes = dict.fromkeys("abc", 1)
    project.run(passes, "--skill-accept")
    edit(project, a={"skip": "later"}, b={"models": ["other"]}, c={"skip": "never"})
    result = project.run(passes, workers)
    assert result.ret == 1
    told = " ".join(gates(result))
    assert "accepted, but skipped now: a (1 of 1), c (1 of 1);" in told
    assert "accepted, but not for this model now: b (1 of 1);" in told
    accepting = project.run(passes, "--skill-accept", workers)
    assert "dropped: a, b, c" in " ".join(accepting.outlines)
    assert accepting.ret == 0
    assert json.loads(project.file.read_text())["models"] == {}
    assert project.run(passes).ret == 0


@pytest.mark.parametrize("how", ["skip", "xfail"])
def test_accepted_cases_that_a_hook_skips_fail_the_run(
    project: Project, workers: str, how: str
) -> None:
    project.write("a", "b")
    project.run({"a": 1, "b": 1}, "--skill-accept")
    hook = f"def pytest_runtest_call(item):\n    if item.name[0] == 'a': pytest.{how}('not now')\n"
    (project.pytester.path / "conftest.py").write_text(f"import pytest\n{hook}")
    result = project.run({"a": 1, "b": 1}, workers)
    assert result.ret == 1
    assert "accepted, but skipped now: a (1 of 1);" in gates(result)[0]
    accepting = project.run({"a": 1, "b": 1}, "--skill-accept", workers)
    assert "dropped: a" in " ".join(accepting.outlines)
    assert project.run({"a": 1, "b": 1}).ret == 0


def test_accepted_cases_under_a_skipif_of_text_fail_the_run(project: Project) -> None:
    project.write("a")
    project.run({"a": 1}, "--skill-accept")
    add_mark(project, "pytest.mark.skipif('1 == 1', reason='not now')")
    result = project.run({"a": 1})
    assert (result.parseoutcomes(), result.ret) == ({"skipped": 1}, 1)
    assert "accepted, but skipped now: a (1 of 1);" in gates(result)[0]


def test_a_skill_whose_file_of_cases_is_gone_fails_the_run(project: Project) -> None:
    project.write("a")
    project.run({"a": 1}, "--skill-accept")
    (project.folder / "skill_meta.json").unlink()
    write_skill(project.pytester.path / "skills/other", [case("a is it?", "yes", id="a")])
    result = project.run({"a": 1})
    assert result.ret == 1
    assert "accepted, but gone from the file: a (1 of 1)" in gates(result)[0]
    other = write_script(project.pytester.path / "other.json", knows="yes", does_not="yes")
    args = ["--skill", "skills", "--model", other]
    assert project.pytester.runpytest_inprocess(*args).ret == 0  # nothing accepted on this model


def test_an_edited_or_skipped_test_in_python_is_told(project: Project) -> None:
    project.write("a")
    project.pytester.makepyfile(test_gate=TEST)
    project.run({"a": 1}, "--skill-accept", skill=False)
    project.pytester.makepyfile(test_gate=TEST.replace('== "yes"', "is not None"))
    changed = project.run({"a": 0}, skill=False)
    assert (changed.parseoutcomes(), changed.ret) == ({"passed": 1}, 1)
    assert "changed since accepted: test_gate::test_a (1 of 1)" in gates(changed)[0]
    mark = '@pytest.mark.skip\n    @pytest.mark.skill("skills/gate")'
    text = TEST.replace('@pytest.mark.skill("skills/gate")', mark)
    project.pytester.makepyfile(test_gate=text)
    skipped = project.run({"a": 0}, skill=False)
    assert (skipped.parseoutcomes(), skipped.ret) == ({"skipped": 1}, 1)
    assert "accepted, but skipped now: test_gate::test_a" in gates(skipped)[0]


def test_editing_the_skill_keeps_accepted_results(project: Project) -> None:
    project.write("a")
    project.run({"a": 1}, "--skill-accept")
    (project.folder / "SKILL.md").write_text(
        (project.folder / "SKILL.md").read_text() + "\nSKILL, but worse.\n"
    )
    assert "regression" in project.run({"a": 0}).stdout.str()


def test_a_subset_accepts_only_its_own_cases(project: Project, workers: str) -> None:
    project.write("apple", "pear", "plum")
    project.run({"apple": 1, "pear": 1, "plum": 0}, "--skill-accept")
    before = project.accepted()["cases"]
    worse = {"apple": 0, "pear": 0, "plum": 0}
    result = project.run(worse, "--skill-accept", "-k", "pear", workers)
    result.stdout.fnmatch_lines(["*ran only 1 of 3 cases.*"])
    after = project.accepted()["cases"]
    assert after["pear"]["passes"] == 0
    assert {**after, "pear": None} == {**before, "pear": None}
    assert "ran only" not in project.run(worse).stdout.str()


def test_other_models_are_kept_and_deleted_cases_are_dropped(project: Project) -> None:
    project.write("a", "b")
    other = write_script(project.pytester.path / "other.json", knows="no")
    project.run({"a": 1, "b": 1}, "--skill-accept", "--model", other)
    project.write("b")
    project.run({"b": 1}, "--skill-accept")
    assert set(project.accepted()["cases"]) == {"b"}
    assert set(project.accepted(other)["cases"]) == {"a", "b"}


def test_unanswered_cases_are_not_accepted(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", [case(n, "yes", id=n) for n in ("good", "bad")])
    rules = [{"question": "good", "answer": "yes"}]
    (pytester.path / "a.json").write_text(json.dumps(rules))
    args = ["--skill", "skills", "--model", "scripted:a.json", "--skill-accept"]
    result = pytester.runpytest_inprocess(*args)
    assert result.parseoutcomes() == {"passed": 1, "errors": 1}
    assert result.ret == 1
    written = json.loads((pytester.path / "skills/gate/skill_results.json").read_text())
    assert list(written["models"]["scripted:a.json"]["cases"]) == ["good"]
    result.stdout.fnmatch_lines(["*accepted 1 case in*"])
    assert "not accepted: bad" in " ".join(result.outlines)


def test_an_accepted_case_that_is_marked_xfail_now_fails_the_run(project: Project) -> None:
    project.write("a", "b")
    project.run({"a": 1, "b": 0}, "--skill-accept")
    project.write("a", "b", xfail="known")
    result = project.run({"a": 0, "b": 0})
    assert (result.parseoutcomes(), result.ret) == ({"xfailed": 2}, 1)
    assert "accepted, but marked xfail now: a (1 of 1);" in gates(result)[0]
    assert "dropped: a" in " ".join(project.run({"a": 0}, "--skill-accept").outlines)
    assert project.run({"a": 0, "b": 0}).ret == 0


def test_an_xfail_that_does_not_hold_changes_nothing(project: Project) -> None:
    project.write("a")
    project.run({"a": 1}, "--skill-accept")
    add_mark(project, "pytest.mark.xfail(False, reason='elsewhere')")
    assert "regression: a: 0 of 1 passed" in gates(project.run({"a": 0}))[0]


def add_mark(project: Project, mark: str) -> None:
    hook = f"import pytest\ndef pytest_itemcollected(item):\n    item.add_marker({mark})\n"
    (project.pytester.path / "conftest.py").write_text(hook)


def test_runxfail_shows_failures_that_were_accepted(project: Project) -> None:
    project.write("a")
    project.run({"a": 0}, "--skill-accept")
    project.run({"a": 0}, "--runxfail").assert_outcomes(failed=1)


def test_a_broken_file_of_results_is_one_message(project: Project, workers: str) -> None:
    project.write("a")
    project.file.write_text('{\n "schema": 1,\n "models": {"m": {"date": 3}}}')
    result = project.run({"a": 1}, workers)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*skills/gate/skill_results.json:3: models.m.*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_nothing_is_written_without_accept(project: Project) -> None:
    project.write("a")
    project.run({"a": 1})
    project.run({"a": 1}, "--skill-accept", "--collect-only")
    assert not project.file.exists()


TEST = """
    import pytest

    @pytest.mark.skill("skills/gate")
    def test_a(ask):
        assert ask("a is it?") == "yes"
"""


def test_tests_in_python_are_accepted_too(project: Project, workers: str) -> None:
    project.write("a")
    project.pytester.makepyfile(test_gate=TEST)
    project.run({"a": 1}, "--skill-accept", skill=False).assert_outcomes(passed=1)
    assert list(project.accepted()["cases"]) == ["test_gate::test_a"]
    project.run({"a": 1}, "--skill-accept").assert_outcomes(passed=1)
    assert list(project.accepted()["cases"]) == ["a", "test_gate::test_a"]
    result = project.run({"a": 0}, workers, skill=False)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*regression: 0 of 1 passed (accepted: 1 of 1, *"])
    project.run({"a": 0}, "--skill-accept", skill=False).assert_outcomes(xfailed=1)
    accepted = project.run({"a": 0}, workers, skill=False)
    accepted.assert_outcomes(xfailed=1)
    assert accepted.ret == 0


IN_PYTHON = """
    import pytest

    @pytest.mark.skill("skills/gate")
    @pytest.mark.parametrize("name", ["p", "q"])
    def test_it(ask, name):
        assert ask(name + " is it?") == "yes"
"""


def test_tests_in_python_that_regressed_with_others_fail_in_the_end(
    project: Project, workers: str
) -> None:
    """What they answer is known only when all of them ran: a second report says so."""
    project.write("a", "b")
    project.pytester.makepyfile(test_gate=IN_PYTHON)
    names = ["a", "b", "p", "q"]
    project.run(dict.fromkeys(names, 3), "--skill-accept", "test_gate.py", runs=3)
    fallen = {**dict.fromkeys(names, 0), "b": 3}
    result = project.run(fallen, workers, "test_gate.py", "--junitxml=junit.xml", runs=3)
    assert result.parseoutcomes() == {"passed": 1, "xfailed": 3, "failed": 3}
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED test_gate.py::test_it*"])
    assert "as a whole: 3 of 12 runs " in gates(result)[-1]
    assert junit(project) == {"a": "failure", "b": "passed", "test_it": "failure"}
    again = project.run(fallen, workers, "test_gate.py", "--lf", runs=3)
    assert again.parseoutcomes()["failed"] == 3
    chance = project.run({**dict.fromkeys(names, 3), "p": 0}, workers, "test_gate.py", runs=3)
    assert (chance.parseoutcomes(), chance.ret) == ({"passed": 3, "xfailed": 1}, 0)


def test_a_folder_that_cannot_be_written_is_reported(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("a")

    def refuse(self: Path, _: Path) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "replace", refuse)
    result = project.run({"a": 1}, "--skill-accept")
    assert result.ret == 1
    assert ending(result)[0].startswith("✘ --skill-accept ")
    assert "can't be written: permission denied" in ending(result)[0]
    assert sorted(file.name for file in project.folder.iterdir()) == ["SKILL.md", "skill_meta.json"]
