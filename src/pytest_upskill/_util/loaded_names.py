"""Names of files that Python, pytest and this project load without being asked to."""

import re
from typing import Final

# Looked up without case: some file systems take Conftest.py for conftest.py. pytest
# takes test*.txt for doctests.
_LOADED: Final = re.compile(
    r"(?:conftest|__init__|__main__|(?:site|user)customize|noxfile|toxfile)\.py[a-z]?"
    r"|test.*\.(?:py|txt|rst)|.*[_-]tests?\.py"
    r"|(?:pyproject|pytest|tox)\.toml|setup\..+|.*\.(?:ini|cfg)"
    r"|.*\.(?:pth|py[cdo]|so|egg-link)|.*\.(?:dist|egg)-info|entry_points\.txt"
    r"|skill\.md|skill_(?:meta|results)\.json|upskill\.config\.ya?ml",
    re.IGNORECASE | re.DOTALL,
)


def is_loaded_by_name(name: str) -> bool:
    """Whether a file or folder of that name may take effect wherever it lies."""
    return _LOADED.fullmatch(name.rstrip(". ")) is not None  # Windows drops these
