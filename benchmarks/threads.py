"""The limit: the same calls by threads of the standard library, without any SDK.

python benchmarks/threads.py URL SKILL_FOLDER IN_FLIGHT
"""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from material import MODEL, questions
from peak import note_peak


def main(url: str, folder: Path, in_flight: int) -> None:
    address, kept = urlsplit(url), threading.local()

    def ask(question: tuple[str, str]) -> bool:
        if not hasattr(kept, "connection"):
            kept.connection = HTTPConnection(address.netloc)
        roles = zip(("system", "user"), question, strict=True)
        messages = [{"role": role, "content": text} for role, text in roles]
        body = json.dumps({"model": MODEL, "messages": messages, "max_tokens": 2048})
        head = {"Content-Type": "application/json"}
        kept.connection.request("POST", f"{address.path}/chat/completions", body, head)
        reply = json.loads(kept.connection.getresponse().read())
        return "lamp" in reply["choices"][0]["message"]["content"]

    with ThreadPoolExecutor(in_flight) as pool:
        assert all(pool.map(ask, questions(folder)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    note_peak("main")
