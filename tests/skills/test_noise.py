"""Bundled skills that are unrelated to those under test."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

from pytest_upskill.agents.skill_use import keys_of
from pytest_upskill.skills.noise import noise_for, noise_skills
from pytest_upskill.skills.skill import is_valid_name, load_skill


def test_there_are_many_and_each_is_a_sound_skill(tmp_path: Path) -> None:
    skills = noise_skills()
    assert len(skills) >= 60
    assert len({one.name for one in skills}) == len(skills)
    assert len({one.description for one in skills}) == len(skills)
    for one in skills:
        assert is_valid_name(one.name), one.name
        assert 60 <= len(one.description) <= 300, one.name
        assert one.description.endswith("."), one.name
        (tmp_path / one.name).mkdir()
        file = tmp_path / one.name / "SKILL.md"
        file.write_text(one.text, encoding="utf-8")
        skill = load_skill(file)
        assert (skill.name, skill.description) == (one.name, one.description)
        assert skill.body.strip() == one.body.strip()
        assert not skill.warnings, one.name


def test_what_was_opened_can_be_told_apart() -> None:
    lines = Counter(key for one in noise_skills() for key in keys_of(one.body))
    assert [key for key, times in lines.items() if times > 1] == []


def test_more_of_them_hold_the_fewer() -> None:
    names = [
        tuple(one.name for one in noise_for(number, ["gate"]))
        for number in (0, 10, 20, 50)
    ]
    assert [len(one) for one in names] == [0, 10, 20, 50]
    assert all(more[: len(fewer)] == fewer for fewer, more in pairwise(names))


def test_a_name_that_is_taken_is_left_out() -> None:
    first, second, third, *_ = (one.name for one in noise_skills())
    assert [one.name for one in noise_for(2, [first.upper()])] == [second, third]
    assert len(noise_for(len(noise_skills()), [first])) == len(noise_skills()) - 1
