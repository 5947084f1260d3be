"""The loopback server with the batch APIs of Anthropic and OpenAI.

The script answers each request of a batch as if it had come alone. A batch ends once it
was looked at ``looks`` times.
"""

import email
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from support.http_answers import Answer, answer
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.protocols import error_in

Lines = Callable[[list[dict[str, Any]]], list[bytes]]


def as_lines(results: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(one).encode() + b"\n" for one in results]


@dataclass
class Batch:
    """A batch on the server."""

    id: str
    requests: list[dict[str, Any]]
    path: str
    made: float
    metadata: dict[str, str] | None = None
    looked: int = 0
    cancelled: bool = False

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [one.get("params") or one["body"] for one in self.requests]


class BatchServer(LoopbackServer):
    """``fate_of`` tells what becomes of a question: succeeded, errored,
    expired or canceled.

    ``trouble`` is called before a request is served: a Fault takes its place, and
    "lost" lets the server work without an answer.
    """

    def __init__(
        self,
        script: Callable[[Asked], Reply | Fault],
        looks: int = 1,
        fate_of: Callable[[str], str] = lambda _: "succeeded",
        lines: Lines = as_lines,
    ) -> None:
        super().__init__(script)
        self.looks = looks
        self.fate_of = fate_of
        self.lines = lines
        self.trouble: Callable[[str, str], Fault | str | None] = lambda *_: None
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.calls: list[tuple[str, str]] = []
        # Of all batches of OpenAI once they end, in place of "completed"
        self.status = ""
        # Requests that these have results of, if not of all
        self.done: int | None = None

    @property
    def submitted(self) -> Counter[str]:
        """The questions of all batches, and how often each was submitted."""
        found: Counter[str] = Counter()
        for batch in self.batches.values():
            for body in batch.bodies:
                said = body.get("messages") or body["input"]
                found[f"{json.dumps(body.get('system', ''))}{json.dumps(said)}"] += 1
        return found

    def _decide(self, first: str, headers: dict[str, str], content: bytes) -> Answer:
        method, target = first.split(" ")[:2]
        path = target.partition("?")[0]
        if not any(part in path for part in ("/batches", "/files")):
            return super()._decide(first, headers, content)
        self.calls.append((method, path))
        trouble = self.trouble(method, path)
        if isinstance(trouble, Fault):
            protocol: Any = "anthropic" if "/messages/" in path else "openai"
            if trouble.kind == "status":
                more = (
                    f"retry-after: {trouble.retry_after}\r\n"
                    if trouble.retry_after
                    else ""
                )
                told = (trouble.status, trouble.message, trouble.error_type, more)
                return error_in(protocol, *told)
            return replace(answer(b"{}"), way=trouble.kind)
        served = self._serve_batch(
            method, path.rstrip("/").split("/v1/")[1], headers, content
        )
        return replace(served, way="reset") if trouble == "lost" else served

    def _serve_batch(
        self, method: str, path: str, headers: dict[str, str], content: bytes
    ) -> Answer:
        match (method, *path.split("/")):
            case ("POST", "files"):
                name = f"file-{len(self.files)}"
                self.files[name] = _uploaded(headers["content-type"], content)
                return _json(
                    {"id": name, "object": "file", "bytes": 1, "created_at": 1}
                )
            case ("GET", "files", name, "content"):
                return answer(self.files[name], "application/octet-stream")
            case ("POST", "messages", "batches"):
                return self._begin(json.loads(content)["requests"], "/v1/messages")
            case ("POST", "batches"):
                asked = json.loads(content)
                assert asked["completion_window"] == "24h"
                lines = self.files[asked["input_file_id"]].splitlines()
                requests = [json.loads(line) for line in lines]
                assert {one["url"] for one in requests} == {asked["endpoint"]}
                assert len({one["body"]["model"] for one in requests}) == 1
                return self._begin(requests, asked["endpoint"], asked.get("metadata"))
            case ("GET", *kind, "batches"):
                return self._listed(kind)
            case ("GET", *_, "batches", name, "results"):
                assert self._is_ended(self.batches[name])
                return answer(
                    b"".join(self._results(self.batches[name], headers)), "text/plain"
                )
            case ("GET", *_, "batches", name) if name in self.batches:
                batch = self.batches[name]
                batch.looked += 1
                return _json(self._shown(batch, headers))
        return error_in("openai", 404, f"no such thing: {path}", "not_found_error")

    def _begin(
        self,
        requests: list[dict[str, Any]],
        path: str,
        metadata: dict[str, str] | None = None,
    ) -> Answer:
        ids = [one["custom_id"] for one in requests]
        assert len(set(ids)) == len(ids)
        assert all(len(one) <= 64 for one in ids)
        name = f"{'msg' if path == '/v1/messages' else ''}batch_{len(self.batches)}"
        self.batches[name] = Batch(name, requests, path, time.time(), metadata)
        return _json(self._shown(self.batches[name], {}))

    def _is_ended(self, batch: Batch) -> bool:
        return batch.looked >= self.looks or batch.cancelled

    def _listed(self, kind: list[str]) -> Answer:
        of_kind = [
            one
            for one in self.batches.values()
            if (one.path == "/v1/messages") == bool(kind)
        ]
        data = [self._shown(one, {}) for one in reversed(of_kind)]
        return _json(
            {"object": "list", "data": data, "has_more": False, "last_id": None}
        )

    def _shown(self, batch: Batch, headers: dict[str, str]) -> dict[str, Any]:
        ended, number = self._is_ended(batch), len(batch.requests)
        if batch.path == "/v1/messages":
            counts = dict.fromkeys(
                ("succeeded", "errored", "canceled", "expired", "processing"), 0
            )
            counts["succeeded" if ended else "processing"] = number
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch.made))
            # Nobody should go there
            url = "http://127.0.0.1:1/elsewhere" if ended else None
            return {
                "id": batch.id,
                "type": "message_batch",
                "request_counts": counts,
                "created_at": when,
                "expires_at": when,
                "results_url": url,
                "processing_status": "ended" if ended else "in_progress",
            }
        done = (number if self.done is None else self.done) if ended else 0
        shown: dict[str, Any] = {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.path,
            "input_file_id": "file-0",
            "completion_window": "24h",
            "metadata": batch.metadata,
            "created_at": int(batch.made),
            "output_file_id": None,
            "error_file_id": None,
            "status": (self.status or "completed") if ended else "in_progress",
            "request_counts": {"total": number, "completed": done, "failed": 0},
            "errors": None,
        }
        if ended and self.status == "failed":
            problem = {
                "code": "token_limit_exceeded",
                "message": "Enqueued token limit reached",
            }
            shown["errors"] = {"object": "list", "data": [problem]}
        elif ended and headers:
            for kind in ("output", "error"):
                lines = self._results(batch, headers, errors=kind == "error")
                if lines:
                    shown[f"{kind}_file_id"] = name = f"file-{batch.id}-{kind}"
                    self.files[name] = b"".join(lines)
        return shown

    def _results(
        self, batch: Batch, headers: dict[str, str], *, errors: bool | None = None
    ) -> list[bytes]:
        results = []
        for one, body in zip(batch.requests, batch.bodies, strict=True):
            said = (body.get("messages") or body["input"])[-1]["content"]
            fate = "canceled" if batch.cancelled else self.fate_of(str(said))
            result = self._result(one["custom_id"], fate, body, batch.path, headers)
            if errors is None or errors == (result.pop("bad", False)):
                results.append(result)
        return self.lines(results)

    def _result(
        self,
        own_id: str,
        fate: str,
        body: dict[str, Any],
        path: str,
        headers: dict[str, str],
    ) -> dict[str, Any]:
        anthropic = path == "/v1/messages"
        if fate == "succeeded":
            decided = super()._decide(
                f"POST {path} HTTP/1.1", headers, json.dumps(body).encode()
            )
            status, reply = int(decided.head.split()[1]), json.loads(decided.body)
            if not anthropic:
                response = {"status_code": status, "request_id": "r", "body": reply}
                one = {"custom_id": own_id, "response": response, "error": None}
                return {**one, "bad": status != 200}
            result = {"type": "succeeded", "message": reply}
            if status != 200:
                result = {"type": "errored", "error": reply}
            return {"custom_id": own_id, "result": result}
        if anthropic:
            error = {
                "type": "error",
                "error": {"type": "api_error", "message": "told to fail"},
            }
            more = {"error": error} if fate == "errored" else {}
            return {"custom_id": own_id, "result": {"type": fate, **more}}
        if fate == "errored":
            failed = {
                "status_code": 500,
                "body": {"error": {"message": "told to fail"}},
            }
            return {"custom_id": own_id, "response": failed, "error": None, "bad": True}
        code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[fate]
        error = {"code": code, "message": "This request could not be executed."}
        return {"custom_id": own_id, "response": None, "error": error, "bad": True}


def _json(data: dict[str, Any]) -> Answer:
    return answer(json.dumps(data).encode())


def _uploaded(content_type: str, content: bytes) -> bytes:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    parts: Any = email.message_from_bytes(head + content).get_payload()
    for part in parts:
        if part.get_param("name", header="content-disposition") == "file":
            return bytes(part.get_payload(decode=True))
    raise AssertionError("no file was uploaded")
