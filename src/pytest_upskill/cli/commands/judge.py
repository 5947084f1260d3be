"""``pytest-upskill judge``: how well a judge agrees with answers that people labelled."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import eq
from pathlib import Path
from typing import Final

from ..._util.files import read_file, reason_of
from ..._util.json_forms import FormError, Strict, form_of, read_form
from ..._util.texts import counted, one_line
from ...checks.judging import JUDGE_MAX_OUTPUT, Rulings, judge
from ...errors import InputError, shown
from ...measure.assembly import Assembly, announced
from ...options import whole
from ...reports.terminal.tables import text_table
from ...settings import Settings
from ...stats import cohens_kappa
from ...trials.answer import Answer
from ...trials.trial import Question, Rubric
from ..command_table import add_options
from ..output import tell

_EXAMPLE: Final = (
    'One per line: {"question": "…", "answer": "…", "judge": "what a good answer does", '
    '"passed": true}.'
)


class LabelledForm(Strict):
    """One answer with a label for each criterion of the rubric."""

    question: str
    answer: str
    judge: str | list[str]
    passed: bool | list[bool]


@dataclass(frozen=True)
class Labelled:
    """An answer, the criteria of its rubric, and whether people passed each of them."""

    place: str
    question: str
    answer: str
    texts: tuple[str, ...]
    passed: tuple[bool, ...]


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
        help="answers that people labelled, as JSON lines",
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
    examples = load_labels(args.file)
    trouble: list[str] = []
    result = compared(examples, _ask_judge(examples, args, trouble))
    if args.json:
        data = {"model": args.judge, "votes": args.votes, **asdict(result), "trouble": trouble}
        text = json.dumps(data, indent=2)
    else:
        text = "\n".join([*trouble, _text(args.judge, result)])
    return text, 0 if result.labels else 1


def load_labels(file: Path) -> list[Labelled]:
    """The examples in a file, or an error with its place."""
    try:
        text = read_file(file).decode("utf-8")
    except OSError as error:
        raise InputError(file, reason_of(error), "Check the path.") from None
    except UnicodeDecodeError as error:
        raise InputError(file, f"not UTF-8 (byte {error.start})", "Save it as UTF-8.") from None
    examples = [
        _labelled(f"{shown(file)}:{number}", line)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if not examples:
        raise InputError(file, "no examples", _EXAMPLE)
    return examples


def _labelled(place: str, line: str) -> Labelled:
    try:
        form: LabelledForm = read_form(form_of(LabelledForm), json.loads(line))
    except (ValueError, RecursionError):
        raise InputError(place, "invalid JSON", _EXAMPLE) from None
    except FormError as error:
        raise InputError(place, str(error), _EXAMPLE) from None
    texts = [form.judge] if isinstance(form.judge, str) else form.judge
    passed = [form.passed] if isinstance(form.passed, bool) else form.passed
    if not texts or len(texts) != len(passed):
        problem = f"{counted(len(texts), 'text')} and {counted(len(passed), 'label')}"
        raise InputError(place, problem, "Give one label for each text of the rubric.")
    return Labelled(place, form.question, form.answer, tuple(texts), tuple(passed))


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
