"""What a skill shows of itself: badges, and BENCHMARK.md beside its SKILL.md."""

import hashlib
import json
from pathlib import Path
from typing import Final

from .._util.files import read_file, replace_file, resolved
from .._util.keys import shown_words
from .._util.texts import counted, one_line, points
from ..errors import SettingsError, shown
from ..results.row import Word
from ..results.run import RunResults
from ..results.verdict import Verdict
from ..skills.folder import BENCHMARK_NAME, SKILL_NAMES
from ..trials.plan import SkillInfo
from .answers import answer_words
from .markdown import escaped, skill_blocks
from .record_files import safe_names

_COLORS: Final[dict[Word | None, str]] = {
    "helps": "brightgreen",
    "cheaper": "green",
    "hurts": "red",
}
_UNKNOWN_COLOR: Final = "lightgrey"
_MARKER: Final = "<!-- pytest-upskill report --benchmark-md -->"


def write_badges(folder: Path, results: RunResults) -> list[Path]:
    """An endpoint of shields.io for each skill."""
    names = safe_names(verdict.skill for verdict in results.verdicts)
    paths = []
    for verdict in results.verdicts:
        badge = {
            "schemaVersion": 1,
            "label": one_line(verdict.skill, 60),
            "message": _badge_message(verdict),
            "color": _COLORS.get(verdict.verdict, _UNKNOWN_COLOR),
        }
        path = folder / f"{names[verdict.skill]}.json"
        replace_file(path, json.dumps(badge, ensure_ascii=False, indent=1) + "\n")
        paths.append(path)
    if not paths:
        problem = "nothing to write: no skill was compared with its baseline"
        raise SettingsError("badge_folder", problem, value=shown(folder))
    return paths


def _badge_message(verdict: Verdict) -> str:
    """``+60 on haiku``: a number only where it is shown."""
    where = f"over {verdict.models} models"
    if verdict.models == 1:
        where = f"on {one_line(next(iter(verdict.by_model)), 60)}"
    if verdict.verdict in ("helps", "hurts") and verdict.lift is not None:
        return f"{points(verdict.lift)} {where}"
    if verdict.saving:
        return f"{-verdict.saving.change:.0%} cheaper {where}"
    return f"{verdict.verdict or 'no verdict'} {where}"


def write_benchmarks(results: RunResults, root: Path) -> list[Path]:
    """A BENCHMARK.md beside each SKILL.md, which is below ``root``."""
    paths = []
    for skill in results.skills:
        verdicts = [each for each in results.verdicts if each.skill == skill.name]
        if verdicts:
            folder = _find_folder(skill, root)
            path = folder / BENCHMARK_NAME
            replace_file(path, _benchmark_text(results, skill, verdicts[0]))
            paths.append(path)
    if not paths:
        problem = "nothing to write: no skill was compared with its baseline"
        raise SettingsError("benchmark_md", problem)
    return paths


def _find_folder(skill: SkillInfo, root: Path) -> Path:
    """The folder of a skill; SettingsError if it is not here, or not to be written to.

    Results may be anyone's: they must not lead out of the project.
    """
    folder = resolved(root / skill.path)
    name = one_line(skill.path, 200)
    if not folder.is_relative_to(resolved(root)):
        raise SettingsError("benchmark_md", f"{name} is not below {shown(root)}")
    if not any((folder / file).is_file() for file in SKILL_NAMES):
        hint = "Call it in the folder in which pytest was called."
        raise SettingsError("benchmark_md", f"{name} has no SKILL.md here", hint)

    file = folder / BENCHMARK_NAME
    if file.is_file() and not read_file(file).startswith(_MARKER.encode()):
        hint = "Move or delete it."
        raise SettingsError(
            "benchmark_md", f"{name}/{BENCHMARK_NAME} is not ours", hint
        )
    return folder


def _benchmark_text(results: RunResults, skill: SkillInfo, verdict: Verdict) -> str:
    rows = [row for row in results.rows if row.skill == skill.name]
    cases = counted(verdict.cases, "case")
    runs = counted(max(row.runs for row in rows), "run")
    digest = hashlib.sha256(skill.text.encode("utf-8", "surrogatepass")).hexdigest()
    version = one_line(results.versions.get("pytest-upskill", ""), 20)
    facts = f"{cases} × {runs}, {results.started:%Y-%m-%d}, pytest-upskill {version}"
    command = ["pytest", "--skill", skill.path, *results.rerun.models]
    command += [*results.rerun.options, *results.rerun.replay]
    what = "Ask again"
    if results.rerun.replay:
        what = "Replay the answers, which takes no key"

    blocks = [
        f"{_MARKER}\n# {escaped(answer_words(verdict))}",
        *skill_blocks(results, [skill.name]),
        f"{escaped(facts)}, of the SKILL.md with SHA-256 `{digest}`. {what}:",
        f"    {' '.join(shown_words(command))}",
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
