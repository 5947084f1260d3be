"""What the sentence says of a skill that is opened in half of the trials."""

from typing import Any

import pytest

from support.known_model import KnownModel
from support.sandboxes import needs_bwrap
from support.words import HELPS

pytestmark = needs_bwrap


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("cases", "chances", "lift"),
    [
        # Where it is opened, the skill is of no use: trials open it when they are lucky
        (24, {"baseline": 0.5, "skill": 0.9, "closed": 0.1}, 0),
        (16, {"baseline": 0.0, "skill": 0.8}, 0.4),
    ],
)
def test_a_better_description_is_advised_where_openings_help(
    pytester: pytest.Pytester, cases: int, chances: dict[str, Any], lift: float
) -> None:
    with KnownModel(pytester, cases, opens=0.5, **chances) as known:
        row = known.run("--skill-agent", "loop", "--skill-runs", "2").summary
    opened = row["activation"]["count"] / row["activation"]["trials"]
    assert opened == pytest.approx(0.5, abs=0.15)
    assert row["lift"] == pytest.approx(lift, abs=0.15)
    assert (row["verdict"] == HELPS) == (lift > 0)
    advice = "a description that says when to use it may help"
    assert (advice in row["sentence"]) == (lift > 0)
