"""The HTML report, as text: how it shows what other reports show too."""

from dataclasses import replace

from made import made_run
from pages import data_of
from pytest_upskill.reports.html import html_report


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
