"""Started with every Python program of a ``command`` check, before its first line.

The check's own program and the agent's code run in one process. Here the
agent's files shadow no installed module, and a program of the check that ends
because of the agent's code, before its own end, has failed. The agent's own
programs run as they would elsewhere.

It runs on the Python of any image, so its syntax is old; it can't import the package.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
from importlib.machinery import PathFinder
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_ENDED_EARLY = int(os.environ["UPSKILL_ENDED_EARLY"])  # the exit status
_NATIVE_ENDS = (
    *("_exit", "_Exit", "exit", "quick_exit", "execv", "execve", "execvp", "syscall"),
    *("Py_Exit", "Py_Finalize", "Py_FinalizeEx"),
)
_PLUGIN = "upskill_pytest"
_FOLDERS = [
    os.path.realpath(path) for path in os.environ["UPSKILL_FOLDERS"].split("\n")
]
_HIDDEN = frozenset(
    os.path.join(_FOLDERS[0], path) for path in os.environ["UPSKILL_HIDDEN"].split("\n")
)
# A workdir may be a home that has this Python, which nobody can write to.
_PYTHON = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
_getframe, _getpid, _realpath, _end_now = (
    sys._getframe,
    os.getpid,
    os.path.realpath,
    os._exit,
)
_PID = _getpid()
_SystemExit = SystemExit
_CODE: Any = SystemExit.__dict__["code"]


def _is_of_agent(file: str) -> bool:
    if file.startswith("<"):  # <frozen runpy>, or <string>
        return False
    path = _realpath(file)
    inside = any(path.startswith(folder + os.sep) for folder in _FOLDERS)
    return inside and path not in _HIDDEN and not path.startswith(_PYTHON)


_INSTALLED = [
    path for path in sys.path if path and not _is_of_agent(os.path.join(path, "x"))
]


def _is_called_by_agent(frame: Any) -> bool:
    """Whether its code is anywhere above; the name of a file alone can be made up."""
    while frame and not _is_of_agent(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None


def _is_hidden(name: str, folder: str) -> bool:
    return os.path.join(folder, name + ".py") in _HIDDEN


def _ended_by(what: str) -> NoReturn:
    """Say so, and end with a status that no check takes for success."""
    try:
        sys.stdout.flush()
        sys.stderr.write(
            f"\n{what} of the agent's code ended the check before its own end\n"
        )
        sys.stderr.flush()
    finally:  # whatever the agent made of these
        _end_now(_ENDED_EARLY)


class _Finder:
    """Finds a module in these folders, whatever the path is."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return (
            None
            if path is not None
            else PathFinder.find_spec(name, self._folders, target)
        )


class _HiddenFinder(_Finder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        hidden = _is_hidden(name, self._folders[0])
        return super().find_spec(name, path, target) if hidden else None


class _Exit(_SystemExit):
    """``SystemExit``; one that the agent's code raised must
    not be the end of the check.
    """

    _of_agent = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._of_agent = _is_called_by_agent(_getframe(1))

    @property
    def code(self) -> Any:
        code = _CODE.__get__(self)
        if self._of_agent and not code and _getpid() == _PID:
            try:
                _getframe(1)
            # Nobody caught it: the interpreter asks for the exit status
            except ValueError:
                _ended_by("SystemExit")
        return code

    @code.setter
    def code(self, value: Any) -> None:
        _CODE.__set__(self, value)


def _exit(status: Any = None) -> NoReturn:
    raise _Exit(status)


def _leave(status: int) -> NoReturn:
    if status == 0 and _getpid() == _PID:
        _ended_by("os._exit(0)")
    _end_now(status)


def _audit(event: str, args: Any) -> None:
    again = event == "import" and args[0] == "posix"  # for another ``_exit``
    if (
        again
        or event == "os.exec"
        or (event == "ctypes.dlsym" and args[1] in _NATIVE_ENDS)
    ):
        in_thread = threading.current_thread() is not threading.main_thread()
        if (in_thread or _is_called_by_agent(_getframe(1))) and _getpid() == _PID:
            _ended_by(event)


def _watch(folder: str) -> None:
    """Hidden files come first, then what is installed, the path, and ``folder``.

    The last is on the path without PYTHONSAFEPATH; but there, tools look for plugins.
    """
    before = sys.meta_path.index(PathFinder)
    sys.meta_path[before:before] = [_HiddenFinder([folder]), _Finder(_INSTALLED)]
    sys.meta_path.append(_Finder([folder]))
    _Exit.__module__, _Exit.__name__, _Exit.__qualname__ = (
        "builtins",
        "SystemExit",
        "SystemExit",
    )
    changes: Any = (
        (builtins, "SystemExit", _Exit),
        (builtins, "exit", _exit),
        (builtins, "quit", _exit),
        (sys, "exit", _exit),
        (os, "_exit", _leave),
        (sys.modules["posix"], "_exit", _leave),
    )
    for module, name, value in changes:
        setattr(module, name, value)
    if hasattr(sys, "addaudithook"):
        sys.addaudithook(_audit)
    # Who imports this finds no ``_end_now``
    sys.modules[__name__] = ModuleType(__name__)


def _add_plugin() -> None:
    """Add one to pytest; not by its options, which a Python without
    this file would read, too.
    """
    plugins = [name for name in os.environ.get("PYTEST_PLUGINS", "").split(",") if name]
    if _PLUGIN not in plugins:
        os.environ["PYTEST_PLUGINS"] = ",".join([*plugins, _PLUGIN])


def _start() -> None:
    if os.environ["UPSKILL_HIDDEN"]:
        _add_plugin()
    program = sys.argv[0] if getattr(sys, "argv", None) else ""
    folder = _realpath(os.getcwd())
    if program == "-m":
        words = getattr(sys, "orig_argv", [])
        name = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
        top = name.split(".")[0]
        of_agent = bool(name) and not _is_hidden(top, folder)
        of_agent = of_agent and not PathFinder.find_spec(top, _INSTALLED)
    else:
        of_agent = program not in ("", "-", "-c") and _is_of_agent(program)
        if os.path.isfile(program):
            folder = os.path.dirname(_realpath(program))
    paths = os.environ.get("UPSKILL_PATH", "")  # what the command has as PYTHONPATH
    sys.path[:0] = paths.split(os.pathsep) if paths else []
    if of_agent:
        sys.path.insert(0, folder)  # as without PYTHONSAFEPATH
    else:
        _watch(folder)


_start()
