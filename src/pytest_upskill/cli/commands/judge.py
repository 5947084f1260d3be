"""``pytest-upskill judge``: how well a judge agrees with answers that people labelled."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import eq
from pathlib import Path
from typing import Final

from ..._util.texts import one_line
from ...checks.judging import JUDGE_MAX_OUTPUT, Rulings, judge
from ...measure.assembly import Assembly, announced
from ...options import whole
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


def add_judge_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="answers that people labelled, as JSON lines, or the notes that a page exported",
    )
    add_options(parser, "judge", Settings)
    parser.add_argument(
        "--votes",
        type=whole(1).parse,
        default=1,
        metavar="N",
        help="rulings per answer; the majority counts (default: 1)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_judge(args: argparse.Namespace) -> tuple[str, int]:
    labels = load_labels(args.file)
    trouble: list[str] = []
    rulings = _ask_judge(labels.examples, args, trouble) if labels.examples else []
    result = compared(labels.examples, rulings)
    if args.json:
        data = {"model": args.judge, "votes": args.votes, **asdict(result), "trouble": trouble}
        data |= {"unused": labels.unused, "warning": labels.warning or None}
        return json.dumps(data, indent=2), 0 if result.labels else 1
    lines = [*trouble, _text(args.judge, result)] if labels.examples else [_NO_LABEL]
    lines += ["", labels.warning] if labels.warning else []
    if labels.unused:
        lines += ["", "Not used:", *(f"  {line}" for line in labels.unused)]
    return "\n".join(lines), 0 if result.labels else 1


def _ask_judge(
    examples: Sequence[Labelled], args: argparse.Namespace, trouble: list[str]
) -> list[Rulings]:
    settings = Settings(judge=args.judge, base_url=args.base_url)
    models = Assembly()
    models.add_judge(settings)
    models.require(announced(lambda line: tell(sys.stderr, f"{line}\n")))
    engine = models.engine(settings, Path.cwd(), trouble.append, spell=args.spell)
    to_judge = [
        (
            Rubric(args.judge, example.texts, args.votes, JUDGE_MAX_OUTPUT),
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
        for text, label in zip(example.texts, example.passed, strict=True):
            passed, reason = ruling.by_text[text]
            people.append(label)
            judged.append(passed)
            if passed != label:
                kind = "false pass" if passed else "false fail"
                differ.append(f"{example.place}: {kind}: {one_line(reason, 300)}")
    agreed = sum(map(eq, people, judged))
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


def _text(name: str, result: Agreement) -> str:
    rate, kappa = result.agreement, result.kappa
    rows = [
        ("labels", result.labels),
        ("agreement", "none judged" if rate is None else f"{rate:.0%}"),
        ("Cohen's kappa", "not defined" if kappa is None else f"{kappa:.2f}"),
        ("false passes", f"{result.false_passes} of {result.failed_by_people} that people failed"),
        ("false fails", f"{result.false_fails} of {result.passed_by_people} that people passed"),
        ("no ruling", len(result.no_ruling)),
    ]
    return "\n".join([text_table((f"judge {name}", ""), rows), *result.differ, *result.no_ruling])


def _false(claims: Sequence[bool], truths: Sequence[bool]) -> int:
    return sum(claim and not truth for claim, truth in zip(claims, truths, strict=True))
