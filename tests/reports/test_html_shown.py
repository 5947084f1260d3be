"""The HTML report, as text: how it shows what other reports show too."""

import re
from dataclasses import replace

import pytest

from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.terminal.layout import Look
from pytest_upskill.reports.terminal.summary_tables import skill_table
from pytest_upskill.trials.records import Grade
from pytest_upskill.trials.trial import Arm
from support.made import made_run
from support.pages import data_of


def test_what_a_reader_can_not_see_is_written_out_in_the_data() -> None:
    made = made_run(cases=1)
    answer = "one\r\n\ttwo \u202eeerht \x1b[31m\x07\x00"
    records = [replace(record, output=answer, error="\u202e") for record in made.records]
    skills = [replace(skill, against="v1\u202e") for skill in made.skills]
    questions = dict.fromkeys(made.questions, answer)
    results = replace(made, records=tuple(records), skills=tuple(skills), questions=questions)
    data = data_of(html_report(results))
    shown = ["one\n\ttwo \\u202eeerht \\x1b[31m\\x07\\x00"]
    assert [trial["answer"] for trial in data["tests"][0]["trials"]] == [shown, shown]
    assert data["cases"][0]["question"] == shown
    assert data["tests"][0]["trials"][0]["error"] == "\\u202e"
    assert data["against"] == {"gate": "v1\\u202e"}


def test_checks_are_those_of_an_answer_as_in_the_terminal() -> None:
    made = made_run(cases=5, passes=lambda number, *_: number < 2)
    records = [
        replace(record, checks=(*record.checks, Grade("max_words", True, "short")))
        for record in made.records
    ]
    results = replace(made, records=tuple(records))
    lines = skill_table(results.verdicts, Look(160))
    assert " 1.4/2 " in lines[-1]
    assert re.findall(r'data-name="checks">([^<]*/[^<]*)</td>', html_report(results)) == ["1.4/2"]


def test_without_checks_nothing_is_told_of_them() -> None:
    made = made_run(cases=1)
    records = [replace(record, checks=()) for record in made.records]
    page = html_report(replace(made, records=tuple(records)))
    assert re.findall(r'data-name="checks">([^<]*)</td>', page) == ["–"]


@pytest.mark.parametrize(
    ("arms", "against", "keys"),
    [
        (("baseline", "skill"), None, ["without the skill", "with it"]),
        (("skill",), None, ["with the skill"]),
        (
            ("baseline", "previous", "skill"),
            "v1",
            ["without the skill", "with it at v1", "with it"],
        ),
        (("previous", "skill"), "v1", ["with the skill at v1", "with the skill"]),
    ],
)
def test_the_legend_has_the_arms_that_are_drawn(
    arms: tuple[Arm, ...], against: str | None, keys: list[str]
) -> None:
    made = made_run(arms=arms)
    skills = tuple(replace(skill, against=against) for skill in made.skills)
    page = html_report(replace(made, skills=skills))
    legend, _ = re.findall(r'<p class="legend">(.*?)</p>', page)
    assert re.findall(r"</i>(.*?)</span>", legend) == [*keys, "95 % interval"]
    assert ("<title>Pass rate without" in page) == ("baseline" in arms)
