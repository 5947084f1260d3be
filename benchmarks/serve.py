"""A model server with a fixed latency, in its own process so that it shares no GIL.

Prints its address and serves until its standard input ends.

    python benchmarks/serve.py 0.2
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ANSWER = "The lamp is lit."


@contextmanager
def server(latency: float) -> Iterator[str]:
    """Run a server; yields its base URL."""
    command = [sys.executable, __file__, str(latency)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield process.stdout.readline().strip() + "/v1"
        process.communicate()


def serve(latency: float) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.loopback import LoopbackServer, Reply

    with LoopbackServer(lambda _: Reply(ANSWER, delay=latency)) as loopback:
        print(loopback.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    serve(float(sys.argv[1]))
