"""Skills without cases: what a run says of them, and how to write some."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from .._util.keys import shown_command
from .._util.texts import first_few
from ..errors import CasesError, shown
from ..models.providers import ALIASES, HOSTED, model_with_key
from ..settings import Settings
from ..skills.bundle import bundle_root
from ..skills.folder import CASES_NAME, EVALS_NAME
from ..skills.suites.json_files import ROUTES_FILE
from ..skills.suites.ours import how_to_add_cases
from ..skills.suites.reading import FOR_ROUTE, Unread
from .skill_source import SkillSource

NO_CASES: Final = "no cases"  # why a skill is not tested
_BY_MODEL: Final = ("pytest-upskill", "cases")
_MAX_UNREAD: Final = 3
_FOLDERS_ABOVE: Final = 3  # as of plugins/x/skills/y


def command_for_cases(skill: str, env: Mapping[str, str]) -> list[str]:
    """The command that writes cases for a skill: examples,
    if there is no key for a model.
    """
    model, _ = model_with_key(env) or ("", "")
    if not model:
        return ["pytest-upskill", "init", skill]
    # Its default is a model of Anthropic.
    return [*_BY_MODEL, skill, *([] if model in ALIASES else ["--model", model])]


def nothing_to_test(sources: Sequence[SkillSource], settings: Settings) -> CasesError:
    visible = [
        source
        for source in sources
        if not any(part[:1] == "." for part in source.folder.parts)
    ]
    # Not one of .claude/skills, if there are others
    folder = (visible or sources)[0].folder
    words = command_for_cases(shown(folder), os.environ)
    models = [name for name in settings.models if name.partition(":")[0] != "local"]
    if settings.base_url or (
        models and (words[1] == _BY_MODEL[1] or _needs_no_key(models[0]))
    ):
        words = [*_BY_MODEL, shown(folder), *(["--model", models[0]] if models else [])]
        words += ["--base-url", settings.base_url] if settings.base_url else []
    how = (
        "Let a model write some" if words[1] == _BY_MODEL[1] else "Start with examples"
    )
    by_hand = how_to_add_cases(folder / CASES_NAME)
    hint = f"{how}: {shown_command(words)}\n  Or by hand: {by_hand}"
    not_read = f"\n  Not read: {unread}" if (unread := unread_names(sources)) else ""
    hint += not_read
    if elsewhere := _cases_of_plugin(sources):
        hint += (
            "\n  Or use the cases of a file elsewhere: --skill-tests"
            f" {shown(elsewhere)}"
        )
    if len(sources) == 1 and bundle_root(sources[0].skill_file):
        return CasesError(
            folder, "this bundle has no cases of its own", by_hand + not_read
        )
    if len(sources) == 1:
        return CasesError(folder, "this skill has no cases", hint)
    place = shown(Path(os.path.commonpath([source.folder for source in sources])))
    return CasesError(place, f"none of its {len(sources):,} skills has cases", hint)


def unread_names(sources: Iterable[SkillSource], *, every: bool = False) -> str:
    """The eval files of skills that nobody reads, and why;
    the first few unless ``every``.
    """
    unread = [entry for source in sources for entry in source.suites.unread]
    above = (
        folder
        for source in sources
        for folder in source.folder.parents[:_FOLDERS_ABOVE]
    )
    routes = dict.fromkeys(
        file for folder in above if (file := folder / ROUTES_FILE).is_file()
    )
    unread += [Unread(file, FOR_ROUTE) for file in routes]
    files = dict.fromkeys(f"{shown(entry.file)} ({entry.reason})" for entry in unread)
    return first_few([*files], len(files) if every else _MAX_UNREAD)


def _needs_no_key(model: str) -> bool:
    provider = HOSTED.get(model.partition(":")[0])
    return provider is not None and not provider.needs_key


def _cases_of_plugin(sources: Sequence[SkillSource]) -> Path | None:
    """An evals.json of the plugin or repository that has these skills; for one skill,
    mostly.
    """
    for file in _find_above(sources, EVALS_NAME, Path(EVALS_NAME).name):
        if file.is_relative_to(Path.cwd()):
            return file
    return None


def _find_above(sources: Iterable[SkillSource], *names: str) -> Iterator[Path]:
    """Files of these names in the folders above skills."""
    for source in sources:
        for folder in source.folder.parents[:_FOLDERS_ABOVE]:
            for name in names:
                file = folder / name
                if file.is_file():
                    yield file
