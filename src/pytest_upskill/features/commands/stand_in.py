"""Stands in for a command: asks the run for its answer, and acts on it.

One file that needs nothing but a Python, since it runs in the sandbox of an agent.
"""

import json
import os
import signal
import socket
import sys


def main(port: str, token: str, *words: str) -> int:
    # As any command does whose output nobody reads
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    stdin = sys.stdin.buffer.read() if "-" in words else b""
    texts = [os.fsencode(word).decode("utf-8", "replace") for word in words]
    request = json.dumps({"words": texts, "stdin": len(stdin)})
    try:
        with socket.create_connection(("127.0.0.1", int(port))) as connection:
            connection.sendall(f"{token}\n{request}\n".encode())
            answer = json.loads(connection.makefile("rb").readline())
        for path, text in answer["files"].items():
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)  # noqa: PTH103, PTH120
            with open(path, "wb") as file:  # noqa: PTH123
                file.write(text.encode())
    except (OSError, ValueError) as error:
        sys.exit(f"{words[0]}: {error}")

    sys.stdout.buffer.write(answer["stdout"].encode())
    sys.stdout.flush()
    sys.stderr.buffer.write(answer["stderr"].encode())
    return int(answer["exit"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
