"""The child process of the embedded model: llama.cpp's server on a loopback port.

Run as ``python -m pytest_upskill.models.local_server FILE.gguf context=N
[threads=N]``. Prints its address, then serves until its standard input ends, which it
does however the parent dies.
"""

import os
import sys
import threading


def main() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.verbosity = -1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    # One slot and, for plain questions, no prompt cache:
    # the same question gets the same answer.
    params.n_parallel = 1
    options = dict(word.split("=") for word in sys.argv[2:])
    params.n_ctx = int(options["context"])
    params.cpuparams.n_threads = int(
        options.get("threads", min(os.cpu_count() or 1, 8))
    )
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    # Not sys.exit: destroying a server that has just started can hang.
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
