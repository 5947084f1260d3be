"""``pytest-upskill judge``: how well a judge agrees with answers that people labelled."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ..._util.texts import one_line
from ...checks.judging import JUDGE_MAX_OUTPUT, Rulings, judge
from ...errors import SettingsError
from ...measure.assembly import Assembly, announced
from ...reports.terminal.tables import text_table
from ...settings import Settings
from ...stats import cohens_kappa
from ...trials.answer import Answer
from ...trials.trial import Question, Rubric
from ..command_options import add_options
from ..judge_labels import Labelled, load_labels
from ..output import tell

_NO_LABEL: Final = (
    "No label to measure a judge by: mark grades of rubrics as right or wrong in the page."
)


@dataclass(frozen=True)
class Agreement:
    """How well a judge and people agree; None is not defined."""

    labels: int
    agreement: float | None
    kappa: float | None
    false_passes: int
    failed_by_people: int
    false_fails: int
    passed_by_people: int
    differ: tuple[str, ...]
    no_ruling: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="answers that people labelled, as JSON lines, or the notes that a page exported",
    )
    add_options(parser, "judge", Settings)
    parser.add_argument(
        "--votes",
        type=int,
        default=1,
        metavar="N",
        help="rulings per answer; the majority counts (default: 1)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> tuple[str, int]:
    if given.votes < 1:
        raise SettingsError("votes", "must be at least 1", "Use 1, 3 or 5.", value=given.votes)
    labels = load_labels(given.file)
    trouble: list[str] = []
    rulings = _ask_judge(labels.examples, given, trouble) if labels.examples else []
    found = compared(labels.examples, rulings)
    if given.json:
        data = {"model": given.judge, "votes": given.votes, **asdict(found), "trouble": trouble}
        data |= {"unused": labels.unused, "warning": labels.warning or None}
        return json.dumps(data, indent=2), 0 if found.labels else 1
    lines = [*trouble, _text(given.judge, found)] if labels.examples else [_NO_LABEL]
    lines += ["", labels.warning] if labels.warning else []
    if labels.unused:
        lines += ["", "Not used:", *(f"  {line}" for line in labels.unused)]
    return "\n".join(lines), 0 if found.labels else 1


def _ask_judge(
    examples: Sequence[Labelled], given: argparse.Namespace, trouble: list[str]
) -> list[Rulings]:
    settings = Settings(judge=given.judge, base_url=given.base_url)
    models = Assembly()
    models.add_judge(settings)
    models.require(announced(lambda line: tell(sys.stderr, f"{line}\n")))
    engine = models.engine(settings, Path.cwd(), trouble.append, spell=given.spell)
    to_judge = [
        (
            Rubric(given.judge, example.texts, given.votes, JUDGE_MAX_OUTPUT),
            Question("", "", (("user", example.question),), 0, 1),
            Answer(example.answer),
        )
        for example in examples
    ]
    try:
        return judge(engine.ask, to_judge)
    finally:
        engine.close()


def compared(examples: Sequence[Labelled], rulings: Sequence[Rulings]) -> Agreement:
    """The numbers of the agreement, and every label where judge and people differ."""
    people, judged, differ, silent = list[bool](), list[bool](), list[str](), list[str]()
    for example, ruling in zip(examples, rulings, strict=True):
        if ruling.problem:
            silent.append(f"{example.place}: {ruling.problem}")
            continue
        for text, wanted in zip(example.texts, example.passed, strict=True):
            passed, reason = ruling.by_text[text]
            people.append(wanted)
            judged.append(passed)
            if passed != wanted:
                kind = "false pass" if passed else "false fail"
                differ.append(f"{example.place}: {kind}: {one_line(reason, 300)}")
    agreed = sum(one == other for one, other in zip(people, judged, strict=True))
    return Agreement(
        labels=len(people),
        agreement=agreed / len(people) if people else None,
        kappa=cohens_kappa(people, judged),
        false_passes=_false(judged, people),
        failed_by_people=people.count(False),
        false_fails=_false(people, judged),
        passed_by_people=people.count(True),
        differ=tuple(differ),
        no_ruling=tuple(silent),
    )


def _text(name: str, found: Agreement) -> str:
    rate, kappa = found.agreement, found.kappa
    rows = [
        ("labels", found.labels),
        ("agreement", "none judged" if rate is None else f"{rate:.0%}"),
        ("Cohen's kappa", "not defined" if kappa is None else f"{kappa:.2f}"),
        ("false passes", f"{found.false_passes} of {found.failed_by_people} that people failed"),
        ("false fails", f"{found.false_fails} of {found.passed_by_people} that people passed"),
        ("no ruling", len(found.no_ruling)),
    ]
    return "\n".join([text_table((f"judge {name}", ""), rows), *found.differ, *found.no_ruling])


def _false(said: Sequence[bool], true: Sequence[bool]) -> int:
    return sum(one and not other for one, other in zip(said, true, strict=True))
