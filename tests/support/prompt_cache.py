"""A script for the loopback server that counts as Anthropic's and
OpenAI's prompt caches do.
"""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from support.loopback import Asked, Reply

DELAY = 0.03


def tokens(text: str) -> int:
    return len(text.encode()) // 4


def marked_prefixes(body: dict[str, Any]) -> list[str]:
    """What stands before each mark of a request of Messages, with the marked block."""
    blocks: list[dict[str, Any]] = list(body.get("tools", ()))
    system = body.get("system") or ""
    blocks += [{"text": system}] if isinstance(system, str) else system
    for message in body["messages"]:
        content = message["content"]
        blocks += [{"text": content}] if isinstance(content, str) else content
    said, found = "", list[str]()
    for block in blocks:
        plain = {
            key: value
            for key, value in block.items()
            if key not in ("cache_control", "type")
        }
        said += plain.get("text", "") if list(plain) == ["text"] else json.dumps(plain)
        if "cache_control" in block:
            found.append(said)
    return found


def without_marks(body: Any) -> Any:
    """A body as the model reads it: no marks, and blocks of one text as the text."""
    if isinstance(body, list):
        return [without_marks(one) for one in body]
    if not isinstance(body, dict):
        return body
    plain = {
        key: without_marks(value)
        for key, value in body.items()
        if key not in ("cache_control",) and not key.startswith("prompt_cache")
    }
    for key in ("system", "content"):
        blocks = plain.get(key)
        if isinstance(blocks, list) and [set(one) for one in blocks] == [
            {"type", "text"}
        ]:
            plain[key] = blocks[0]["text"]
    return plain


@dataclass
class PromptCache:
    """Answers "yes"; a prefix is warm once the first answer to it was sent."""

    least: int = 1024
    answer: int = 300  # tokens
    delay: float = DELAY
    warm_at: dict[str, float] = field(default_factory=dict)
    text: str = "yes"

    def __call__(self, asked: Asked) -> Reply:
        body = dict(asked.body)
        whole = tokens(asked.system + asked.question)
        # OpenAI keeps any start; the system text is the one that questions share.
        marks = asked.protocol == "anthropic"
        prefixes = marked_prefixes(body) if marks else [asked.system]
        now, read, most = time.monotonic(), 0, 0
        for prefix in prefixes:
            if (count := tokens(prefix)) < self.least:
                continue
            most = max(most, count)
            if self.warm_at.get(prefix, now + 1) <= now:
                read = max(read, count)
            else:
                # A little before the answer is sent, as clocks are not exact.
                self.warm_at[prefix] = min(
                    now + 0.9 * self.delay, self.warm_at.get(prefix, now + 9)
                )
        written = most - read if marks else 0
        return Reply(
            self.text,
            input_tokens=max(0, whole - read - written),
            output_tokens=self.answer,
            cache_read=read,
            cache_write=written,
            delay=self.delay,
        )
