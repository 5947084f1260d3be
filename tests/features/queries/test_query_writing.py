"""Queries that name or quote the skill, or that are there already, are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.features.queries.query_author import query_problems

DESCRIPTION = (
    "Fill in PDF forms and read their fields. Use when someone wants a form to be"
    " completed, or asks which values a form contains."
)
NAMES = ("pdf-forms", "form-filler")


def problems(query: str) -> str:
    return "; ".join(query_problems(query, NAMES, DESCRIPTION))


GOOD = (
    (
        "my landlord sent me this lease (lease_2024.pdf), can u put my adress into the"
        " boxes on page 3"
    ),
    "Which of the 40 applications in ~/Desktop/apply still lack a date of birth?",
    "merge invoice1.pdf and invoice2.pdf into one, then compress it below 2 MB",
    "这个表格里的日期请帮我全部填上，文件在桌面",
)


@pytest.mark.parametrize("query", GOOD)
def test_real_queries_are_kept(query: str) -> None:
    assert not problems(query)


@pytest.mark.parametrize(
    "named",
    [
        *(
            "pdf-forms",
            "PDF-Forms",
            "PDF forms",
            "pdf_form",
            "PdfForms",
            "pdfs-forms",
            "p d f forms",
        ),
        *(
            "pdf form's",
            "“pdf–forms”",
            "ＰＤＦ-forms",
            "pdf/forms",
            "PDFFORM",
            "form-filler",
        ),
        *("Form Fillers", "formfiller", "form_fillers"),
    ],
)
def test_a_query_that_names_the_skill_is_rejected(named: str) -> None:
    problem = problems(f"please use {named} on the file in my downloads")
    assert "names the skill (pdf-forms)" in problem


def test_a_part_of_a_longer_word_is_no_name() -> None:
    def names(query: str) -> bool:
        return any(query_problems(query, ["wick"], "Deploys."))

    assert not names("a wicked bug in Warwick, quick fix please")
    assert names("undo what wick did")
    assert names("two wicks are up")
    assert names("open wick.log and tell me")


@pytest.mark.parametrize(
    "query",
    [
        "Use when someone wants a form to be completed",
        (
            "hey, someone wants a form to be completed, asks which values a form"
            " contains, right?"
        ),
        "asks which values a form contains",
    ],
)
def test_a_copied_description_is_rejected(query: str) -> None:
    assert "copies the description" in problems(query)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "too short"),
        ("do it", "too short"),
        ("look at \x1b[31mthis file please", "invisible"),
        ("fill this p\u200bd\u200bf f\u200borms thing", "invisible"),
        ("read \u202ethis backwards please", "invisible"),
    ],
)
def test_what_no_user_types_is_rejected(query: str, why: str) -> None:
    assert why in problems(query)


@given(st.text(max_size=300))
def test_any_text_gets_an_answer(query: str) -> None:
    assert all(map(str.strip, query_problems(query, NAMES, DESCRIPTION)))
