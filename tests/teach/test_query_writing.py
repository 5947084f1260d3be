"""Queries that name or quote the skill, or that are there already, are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.teach.query_writing import LONGEST_QUERY, QueryRules, alike, words_of

DESCRIPTION = (
    "Fill in PDF forms and read their fields. Use when someone wants a form to be completed, or "
    "asks which values a form contains."
)
RULES = QueryRules(("pdf-forms", "form-filler"), DESCRIPTION)
GOOD = (
    "my landlord sent me this lease (lease_2024.pdf), can u put my adress into the boxes on page 3",
    "Which of the 40 applications in ~/Desktop/apply still lack a date of birth?",
    "merge invoice1.pdf and invoice2.pdf into one, then compress it below 2 MB",
    "这个表格里的日期请帮我全部填上，文件在桌面",
)


@pytest.mark.parametrize("query", GOOD)
def test_real_queries_are_kept(query: str) -> None:
    others = [one for one in GOOD if one != query]
    assert RULES.problem(query, others) is None


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
        *("pdf form's", "“pdf–forms”", "ＰＤＦ-forms", "pdf/forms", "PDFFORM", "form-filler"),
        *("Form Fillers", "formfiller", "form_fillers"),
    ],
)
def test_a_query_that_names_the_skill_is_rejected(named: str) -> None:
    problem = RULES.problem(f"please use {named} on the file in my downloads", ())
    assert problem
    assert "names the skill (pdf-forms)" in problem


def test_a_part_of_a_longer_word_is_no_name() -> None:
    rules = QueryRules(("wick",), "Deploys.")
    assert rules.problem("a wicked bug in Warwick, quick fix please", ()) is None
    assert rules.problem("undo what wick did", ())
    assert rules.problem("two wicks are up", ())
    assert rules.problem("open wick.log and tell me", ())


@pytest.mark.parametrize(
    "query",
    [
        "Use when someone wants a form to be completed",
        "hey, someone wants a form to be completed, asks which values a form contains, right?",
        "asks which values a form contains",
    ],
)
def test_a_copied_description_is_rejected(query: str) -> None:
    assert "copies the description" in (RULES.problem(query, ()) or "")


def test_near_duplicates_are_rejected() -> None:
    for again in (GOOD[0], GOOD[0].upper(), GOOD[0].replace("can u", "can you"), f"{GOOD[0]}!!"):
        assert "nearly the same" in (RULES.problem(again, GOOD[:1]) or "")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("x" * (LONGEST_QUERY + 1), "characters"),
        ("word " * 20_000, "100,000 characters"),
        ("", "too short"),
        ("do it", "too short"),
        ("look at \x1b[31mthis file please", "invisible"),
        ("fill this p\u200bd\u200bf f\u200borms thing", "invisible"),
        ("read \u202ethis backwards please", "invisible"),
    ],
)
def test_what_no_user_types_is_rejected(query: str, why: str) -> None:
    assert why in (RULES.problem(query, GOOD) or "")


@given(st.text(max_size=300), st.lists(st.text(max_size=100), max_size=3))
def test_any_text_gets_an_answer(query: str, others: list[str]) -> None:
    problem = RULES.problem(query, others)
    assert problem is None or problem
    if query.strip() and words_of(query):
        assert RULES.problem(query, [*others, query]) is not None


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=60))
def test_words_are_alike_themselves(words: list[str]) -> None:
    assert alike(words, words)
