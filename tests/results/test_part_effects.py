"""What the parts of a skill earn, in words and as JSON."""

import json
from dataclasses import replace

import pytest

from pytest_upskill._util.json_forms import form_of, json_values
from pytest_upskill.results.effects import State
from pytest_upskill.results.part_effects import (
    Parts,
    ShorterVersion,
    part_conclusions,
    part_loss_words,
    part_sentence,
)
from pytest_upskill.stats import Lift
from support.made_studies import made_parts, part


@pytest.mark.parametrize(
    ("change", "state", "needed", "words"),
    [
        (Lift(0.0, -0.04, 0.06, 1.0), "none shown", None, "no loss shown (-4 to +6)"),
        (Lift(-0.4, -0.62, -0.18, 0.0), "shown", None, "-40 (-62 to -18)"),
        (Lift(-0.05, -0.08, -0.02, 0.0), "shown", None, "-5 (-8 to -2)"),  # a loss all the same
        (Lift(0.3, 0.1, 0.5, 0.0), "shown", None, "better without it, +30 (+10 to +50)"),
        (Lift(0.0, -0.3, 0.3, 1.0), "dropped", 60, "not known (-30 to +30): about 60 cases"),
        (
            Lift(-0.1, -0.3, 0.1, 1.0),
            "none shown",
            None,
            "not known (-30 to +10): no pract",
        ),
        (Lift(0.0, -0.04, 0.06, 1.0), "incomplete", None, "incomplete, as answers are missing"),
        (None, "incomplete", None, "incomplete, as answers are missing"),
    ],
)
def test_what_is_said_of_a_part(
    change: Lift | None, state: State, needed: int | None, words: str
) -> None:
    one = part("Troubleshooting", 212, change, state, needed)
    assert part_loss_words(one, 0.1).startswith(words)
    assert part_sentence(one, 0.1).startswith(f"Troubleshooting (212 tokens): {words}")


def test_the_dearest_points_come_first() -> None:
    found = made_parts(
        part("cheap", 10, Lift(-0.5, -0.6, -0.4, 0.0)),
        part("unknown", 10, None, "incomplete"),
        part("dear", 500, Lift(-0.1, -0.2, 0.0, 0.2)),
        part("idle", 20, Lift(0.0, -0.05, 0.05, 1.0)),
        part("idle and long", 200, Lift(0.1, -0.05, 0.25, 1.0)),
    )
    names = ["idle and long", "idle", "dear", "cheap", "unknown"]
    assert [one.name for one in found.sorted] == names
    assert [one.tokens_per_point for one in found.sorted] == [None, None, 50.0, 0.2, None]


def test_an_incomplete_study_concludes_nothing() -> None:
    found = replace(
        made_parts(part("a", 5, None, "incomplete"), part("b", 5, Lift(-0.5, -0.6, -0.4, 0.0))),
        errored=3,
        error="no budget left",
    )
    assert part_conclusions(found) == [
        "Incomplete: 3 trials without an answer, in 1 of 2 parts: no budget left"
    ]


def test_parts_survive_a_file() -> None:
    found = replace(
        made_parts(
            part("a\x1b[31m", 5, Lift(0.0, -0.04, 0.06, 1.0)),
            part("b", 5, None, "incomplete"),
            replace(part("references/x.md", 5, Lift(0.2, -0.1, 0.5, 0.3)), kind="file", line=0),
        ),
        versions=(
            ShorterVersion(20, None, Lift(0.0, -0.1, 0.1, 1.0), ("a",), "skills/x-short", 9, 40),
        ),
        held_out=Lift(0.5, 0.2, 0.8, 0.01),
        not_measured={"c": "why"},
        notes=("Written",),
        cost=0.5,
        by="paragraph",
        agent="loop",
        model="m",
        errored=1,
        error="down",
    )
    data = json.loads(json.dumps(json_values(found)))
    assert form_of(Parts).validate_python(data) == found


def test_only_a_helping_skill_has_parts_that_could_go() -> None:
    helps = made_parts(part("a", 5, Lift(0.0, -0.04, 0.06, 1.0), could_go=True))
    assert part_conclusions(helps)[-1].startswith(
        "Could go: a; 5 tokens of about 100. A loss of 10"
    )
    idle = replace(helps, lift=Lift(0.02, -0.05, 0.09, 0.4))
    assert part_conclusions(idle)[-1].startswith(
        "The skill itself is not shown to help on these cases"
    )
    hurts = replace(helps, lift=Lift(-0.2, -0.3, -0.1, 0.0))
    assert part_conclusions(hurts)[-1].startswith("The skill itself hurts on these cases")
