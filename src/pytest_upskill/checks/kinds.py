"""All kinds of checks: imported for cases that look at more than a text."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from ..registry import check_modules
from .activity_checks import KINDS as ACTIVITY_KINDS
from .check import CheckKind
from .code_checks import KINDS as CODE_KINDS
from .command_check import command_kind
from .data_checks import KINDS as DATA_KINDS
from .file_checks import UNCHANGED, files_kind
from .group import RESERVED
from .judging import JUDGE
from .text_checks import KINDS as TEXT_KINDS
from .verifier_check import verifier_kind

_OF_FEATURES: Final = chain.from_iterable(module.KINDS for module in check_modules())
KINDS: Final[Mapping[str, CheckKind]] = {
    kind.name: kind
    for kind in (
        *(*TEXT_KINDS, *DATA_KINDS, *CODE_KINDS),
        *(files_kind(), UNCHANGED, command_kind(), verifier_kind(), *ACTIVITY_KINDS),
        *(JUDGE, *_OF_FEATURES),
    )
}
TAKEN: Final = (*KINDS, *RESERVED, "python")  # names that registered checks can't have


def kinds_of_skill(folder: Path) -> dict[str, CheckKind]:
    """Kinds whose arguments may name files in the skill's folder."""
    kinds = (files_kind(folder), command_kind(folder), verifier_kind(folder))
    return {kind.name: kind for kind in kinds}
