"""The command that runs one test of a run again."""

import posixpath
from dataclasses import dataclass

from .._util.credentials import shown_words


@dataclass(frozen=True)
class Rerun:
    """What a command needs besides a node id, to ask and grade as the run did.

    Paths in ``options`` are relative to the folder that pytest was called in, and so is ``root``,
    the rootdir. ``models`` are for tests in Python: other node ids name their model.
    """

    options: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    root: str = ""

    def command(self, nodeid: str) -> str:
        """For a shell; credentials are left out. Empty if an old file does not tell the node id."""
        return " ".join(self.words(nodeid)) if nodeid else ""

    def words(self, nodeid: str) -> list[str]:
        """The words of this command, quoted."""
        file, colons, name = nodeid.partition("::")
        place = posixpath.normpath(posixpath.join(self.root, file)) + colons + name
        models = self.models if file.endswith(".py") else ()
        return shown_words(["pytest", "-vv", place, *models, *self.options])
