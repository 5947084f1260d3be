"""Load Python files that users name, as modules outside any package."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from .files import read_file
from .texts import digest

_LONGEST: Final = 10_000_000  # bytes


def load_python_file(file: Path) -> ModuleType:
    """Raises OSError if the file can't be read, ImportError for anything it raises itself."""
    source = read_file(file, _LONGEST)
    module = ModuleType(f"_pytest_upskill_{digest(str(file))[:12]}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up there
    try:
        # An importer would write __pycache__ into the skill's folder.
        exec(compile(source, str(file), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise ImportError(f"{type(error).__name__}: {error}") from error
    return module
