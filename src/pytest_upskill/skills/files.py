"""Files of a skill's folder that a case puts into its question."""

import os
from pathlib import Path

from .skill import MAX_FILE_BYTES


def read_skill_file(folder: Path, name: str) -> str:
    """The text of a file of the skill; ValueError, with what is wrong, if it has none to give."""
    if "\0" in name:
        raise ValueError(f"{name!r} can't be the name of a file")
    try:
        # realpath, since resolve raises at a link that leads to itself
        real, root = Path(os.path.realpath(folder / name)), Path(os.path.realpath(folder))
        if not real.is_relative_to(root):
            raise ValueError(f"{name!r} leads out of the skill's folder; put a copy into it")
        if not real.is_file():
            what = "is a folder" if real.is_dir() else "is not there"
            raise ValueError(f"{name!r} {what}; name a file, from the skill's folder on")
        size = real.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ValueError(
                f"{name!r} has {size:,} bytes; {MAX_FILE_BYTES:,} are allowed, so shorten it"
            )
        text = real.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name!r} is not a text in UTF-8 (byte {error.start}), and a question is all text"
        ) from None
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} can't be the name of a file") from None
    except OSError as error:
        raise ValueError(f"{name!r} can't be read: {error.strerror or error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
