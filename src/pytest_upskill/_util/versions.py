"""What a run was made with."""

import platform
from importlib.metadata import version

from .. import __version__


def versions() -> dict[str, str]:
    return {
        "pytest-upskill": __version__,
        "pytest": version("pytest"),
        "python": platform.python_version(),
        "platform": platform.system().lower(),
    }
