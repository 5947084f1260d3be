"""Reads the commands of cases: ``evals/commands/NAME.yaml``."""

import re
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from ..._util.json_forms import FormError
from ...agents.part import PartReader
from ...errors import CasesError
from ...skills.case_forms import CaseForm
from ...skills.folder import read_skill_bytes, text_of
from ...skills.yaml_forms import read_yaml_form
from .answers import ANSWERS, BY_COMMAND, AnswerForm
from .part import Commands

FOLDER: Final = "evals/commands"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")


class CommandFiles(PartReader):
    """The commands of cases that lie in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._answers_in = cache(self._read)  # for all cases

    def part_of(self, form: CaseForm) -> Commands | None:
        """The commands of a case; CasesError if a file of them can't be used."""
        answers = self._answers_in(FOLDER)
        if own := form.commands:
            answers = answers | self._read_own(own)
        return Commands(BY_COMMAND.dump_json(answers).decode()) if answers else None

    def _read_own(self, folder: str) -> dict[str, list[AnswerForm]]:
        problem = "has no NAME.yaml with the answers of a command"
        if PurePosixPath(folder).parts[0] != "evals":
            problem = "is not in evals/, so it would be installed with the skill"
        elif answers := self._answers_in(folder):
            return answers
        raise FormError([(("commands",), f"{folder!r} {problem}")])

    def _read(self, folder: str) -> dict[str, list[AnswerForm]]:
        answers = {}
        for file in sorted((self.folder / folder).glob("*.yaml")):
            if not _NAME.fullmatch(file.stem):
                raise CasesError(file, "can't be a command; rename the file")
            try:
                data = read_skill_bytes(self.folder, f"{folder}/{file.name}")
                text = text_of(data)
            except ValueError as error:
                raise CasesError(file, str(error)) from None
            answers[file.stem] = read_yaml_form(ANSWERS, text, file, only_texts=True)
        return answers
