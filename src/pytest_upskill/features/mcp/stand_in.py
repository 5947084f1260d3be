"""Stands in for an MCP server: passes each message on, and its answer back.

One file that needs nothing but a Python, since it runs in the sandbox of an agent.
"""

import socket
import sys


def main(port: str, token: str, number: str) -> None:
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        stream = connection.makefile("rwb")
        stream.write(token.encode() + b"\n")
        for line in filter(bytes.strip, sys.stdin.buffer):
            stream.write(number.encode() + b" " + line.strip() + b"\n")
            stream.flush()
            if not (answer := stream.readline()):
                break
            if answer.strip():
                sys.stdout.buffer.write(answer)
                sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OSError, KeyboardInterrupt):
        sys.stderr = None  # nobody reads it
