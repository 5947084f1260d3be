"""A process that compiles and matches patterns, with limits of memory and CPU time.

A pattern is a program of a stranger: a few hundred characters may take gigabytes to
compile or hours to match. Here that ends this process only. It is run as a script,
without site-packages and without the environment of the run; ``matching.py`` starts it
and talks to it, a line of JSON each way.
"""

import json
import signal
import sys
from time import process_time
from typing import Any


def serve(packages: str, memory: int) -> None:
    # Ctrl-C is for the run, which then ends us
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.append(packages)  # where ``regex`` is
    import regex

    flags = {True: 0, False: regex.IGNORECASE | regex.FULLCASE}
    both = list(flags.values())
    _limit_memory(memory)
    for line in sys.stdin.buffer:
        started = process_time()
        pattern, case_sensitive, text, most, seconds = json.loads(line)
        _limit_time(2 * seconds)
        wanted = both if case_sensitive is None else [flags[case_sensitive]]
        reply = _spans(regex, pattern, wanted, text, most=most, seconds=seconds)
        _limit_time(0)
        sys.stdout.write(json.dumps([reply, process_time() - started]) + "\n")
        sys.stdout.flush()


def _spans(
    regex: Any, pattern: str, wanted: list[int], text: str, *, most: int, seconds: float
) -> list[tuple[int, int]] | str | None:
    """Where it matches; what is wrong with the pattern; None if that takes too long."""
    try:
        for flags in wanted:
            compiled = regex.compile(pattern, flags)
    except regex.error as error:
        return f"invalid pattern: {error}"
    except MemoryError:
        raise
    except Exception as error:  # a bug in the regex compiler can raise anything
        return f"pattern can't be compiled: {type(error).__name__}"
    found = list[tuple[int, int]]()
    try:
        for match in (
            compiled.finditer(text, timeout=seconds) if len(wanted) == 1 else ()
        ):
            found.append(match.span())
            if len(found) == most:
                break
    except TimeoutError:
        return found or None
    return found


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # on Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _limit_time(seconds: float) -> None:
    """SIGPROF ends the process after so much CPU time, whatever it does; 0 is no
    limit.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
