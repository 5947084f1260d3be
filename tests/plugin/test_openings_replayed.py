"""What an opening did is told from which trials opened the skill,
whatever these depend on.
"""

import pytest

from support.known_model import KnownModel
from support.sandboxes import needs_bwrap
from support.words import HELPS

pytestmark = needs_bwrap


@pytest.mark.nightly
def test_trials_that_open_a_useless_skill_when_they_are_lucky(
    pytester: pytest.Pytester,
) -> None:
    with KnownModel(
        pytester, 24, opens=0.5, baseline=0.5, skill=0.9, closed=0.1
    ) as known:
        row = known.run("--skill-agent", "loop", "--skill-runs", "2").summary
    assert row["activated_rate"] == pytest.approx(0.5, abs=0.15)
    assert row["lift_per_opening_low"] < 0 < row["lift_per_opening_high"]
    assert "description" not in row["sentence"]


@pytest.mark.nightly
def test_a_skill_that_helps_by_80_points_where_it_is_opened(
    pytester: pytest.Pytester,
) -> None:
    with KnownModel(pytester, 16, opens=0.5, baseline=0.0, skill=0.8) as known:
        row = known.run("--skill-agent", "loop", "--skill-runs", "2").summary
    assert row["verdict"] == HELPS
    assert row["lift"] == pytest.approx(0.4, abs=0.15)
    assert row["lift_per_opening"] == pytest.approx(row["lift"] / row["activated_rate"])
    assert row["lift_per_opening_low"] < 0.8 < row["lift_per_opening_high"]
    assert "a description that says when to use it may help" in row["sentence"]
