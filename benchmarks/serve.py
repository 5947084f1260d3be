"""A model server in its own process, so that it shares no GIL: with a latency,
perhaps busy.

Prints its address, serves until its standard input ends,
and prints how many calls it refused.

    python benchmarks/serve.py 0.2
    python benchmarks/serve.py 0.2 '{"cap": 8}'
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.busy import Bucket, Busy
from support.loopback import LoopbackServer

ANSWER = "The lamp is lit."
Rules = dict[str, Any]  # those of Busy; a rate limit of requests is [per second, most]


@dataclass
class Served:
    """A server; ``refused`` is known once it has ended."""

    url: str
    refused: int = 0


def busy(latency: float, rules: Rules) -> Busy:
    """The rules of a server, which also know what is ideal."""
    rates = rules.get("requests")
    return Busy(
        **{**rules, "latency": latency, "requests": Bucket(*rates) if rates else None}
    )


@contextmanager
def busy_server(latency: float, rules: Rules) -> Iterator[Served]:
    """Run a server."""
    command = [sys.executable, __file__, str(latency), json.dumps(rules)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        served = Served(process.stdout.readline().strip() + "/v1")
        yield served
        served.refused = int(process.communicate()[0])


@contextmanager
def server(latency: float) -> Iterator[str]:
    """Run a server that takes every call; yields its base URL."""
    with busy_server(latency, {}) as served:
        yield served.url


def serve(latency: float, rules: Rules) -> None:
    of = busy(latency, rules)
    with LoopbackServer(of.script(ANSWER)) as loopback:
        print(loopback.url, flush=True)
        sys.stdin.read()
    print(of.refused)


if __name__ == "__main__":
    serve(float(sys.argv[1]), json.loads("".join(sys.argv[2:]) or "{}"))
