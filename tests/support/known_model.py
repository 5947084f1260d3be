"""Whole runs of pytest with a model whose chances to be right are known.

    def test_…(pytester, monkeypatch):
        with KnownModel(pytester, 12, baseline=0.3, skill=0.8) as known:
            run = known.run("--skill-runs", "3") known.later(monkeypatch, days=2,
            baseline=0.8)  # the model has changed since known.write(version="edited")
            # SKILL.md, and nothing else; as good as "skill" run =
            known.run("--skill-runs", "3")

It is a server that is asked over HTTP, so that answers are stored, retried and counted
as real ones are. The skill is ``gate``; its cases are ``c0``, ``c1``, … A chance is
that of all cases, or one for each. It is looked up by the version of ``SKILL.md`` that
the question holds (``skill`` unless ``write`` says otherwise, and then as for ``skill``
unless it has a chance of its own) or ``baseline``. ``chances["m2 skill"]`` are those of
the second of ``run(models=2)`` alone.

Each draw depends only on the seed, the day, model, version, case, and how often it was
asked this: runs can't change by timing, and a question that is asked again gets
another draw. The order in which runs of a case come in may vary, so assert counts and
rates of cases, not single runs.

``empty`` is the share of replies without text, by version. A case in ``errors``
gets status 500 in these versions: ``{"c3": ("skill",)}``. ``tokens`` are those
of an output, by version.

By ``--skill-agent loop`` (needs_bwrap), ``opens`` is the chance that the
agent opens the skill; without that it is right by the chance ``closed``, or
else as often as the baseline.
"""

import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Self

import pytest

from support.kit import case, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.runs import SkillRun, run_skills

Chance = float | Sequence[float]


class KnownModel:
    """Serves inside its ``with`` block."""

    def __init__(
        self,
        pytester: pytest.Pytester,
        cases: int,
        *,
        seed: int = 1,
        empty: Mapping[str, float] | None = None,
        errors: Mapping[str, Sequence[str]] | None = None,
        tokens: Mapping[str, int] | None = None,
        opens: Chance = 1.0,
        **chances: Chance,
    ) -> None:
        self.pytester, self.cases, self.seed = pytester, cases, seed
        self.empty, self.errors, self.tokens = empty or {}, errors or {}, tokens or {}
        self.opens, self.chances, self.day = opens, chances, 0
        self.server = LoopbackServer(self._reply)
        self.folder = pytester.path / "skills/gate"
        self.write()

    def write(self, version: str = "skill", **case_keys: Any) -> None:
        """Write the skill; all cases have these keys, too."""
        cases = [
            case(f"c{n}?", "yes", id=f"c{n}", **case_keys) for n in range(self.cases)
        ]
        write_skill(self.folder, cases, body=f"Version <{version}>: say yes.")

    def run(self, *args: str, models: int = 1, subprocess: bool = False) -> SkillRun:
        """Test the skill with the model ``m``, and with ``m2``, … if there are
        several.
        """
        others = [word for n in range(2, models + 1) for word in ("--model", f"m{n}")]
        return run_skills(
            self.pytester, self.server, *others, *args, subprocess=subprocess
        )

    def later(
        self, monkeypatch: pytest.MonkeyPatch, days: float, **chances: Chance
    ) -> None:
        """Set the clock of ``time.time`` forward (in this process),
        and perhaps change chances.
        """
        self.day += 1
        self.chances |= chances
        now = time.time
        monkeypatch.setattr("time.time", lambda: now() + days * 24 * 60 * 60)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.server.__exit__(*raised)

    def _reply(self, asked: Asked) -> Reply | Fault:
        name = asked.question.partition("?")[0]
        number = int(name[1:])
        asked_before = (asked.model, asked.system, asked.results, name, asked.attempt)
        draw = Random(repr((self.seed, self.day, asked_before)))
        agent_may_open = "skill" in asked.tools and not asked.results
        if agent_may_open and draw.random() < _of_case(self.opens, number):
            return Reply(calls=(("skill", {"name": "gate"}),))
        text = "".join([asked.system, *asked.results])
        version = text.partition("Version <")[2].partition(">")[0]
        version = version or ("closed" if agent_may_open else "baseline")
        if version in self.errors.get(name, ()):
            return Fault("status", 500)
        output_tokens = self.tokens.get(version, 5)
        if draw.random() < self.empty.get(version, 0.0):
            return Reply("", output_tokens=output_tokens)
        like = "baseline" if version == "closed" else "skill"
        names = [f"{asked.model} {version}", version, f"{asked.model} {like}", like]
        chance = next(self.chances[name] for name in names if name in self.chances)
        passes = draw.random() < _of_case(chance, number)
        return Reply("yes" if passes else "no", output_tokens=output_tokens)


def _of_case(chance: Chance, number: int) -> float:
    return chance if isinstance(chance, float | int) else chance[number]
