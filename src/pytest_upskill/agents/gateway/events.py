"""Server-sent events: a stream of bytes, cut where its events end."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r|\r\n\n|\n\r\n")


@dataclass(frozen=True)
class Event:
    """An event as it came, and the JSON object in it; None if there is none."""

    raw: bytes
    data: dict[str, Any] | None

    @property
    def is_error(self) -> bool:
        """Whether a server says, in any of the protocols, that it can't go on."""
        if self.data is None:
            return False
        return self.data.get("type") in ("error", "response.failed") or (
            bool(self.data.get("error")) and not self.data.get("choices")
        )


class Splitter:
    """Takes parts of a stream as they arrive and gives the events that are whole by now."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0

    def feed(self, part: bytes) -> list[Event]:
        self._rest += part
        events, start = list[Event](), 0
        while end := _END.search(self._rest, max(start, self._searched)):
            events.append(event_of(bytes(self._rest[start : end.end()])))
            start = self._searched = end.end()
        del self._rest[:start]
        self._searched = max(0, len(self._rest) - 3)  # an end may have arrived in part
        return events

    @property
    def rest(self) -> bytes:
        """What came after the last whole event."""
        return bytes(self._rest)


def event_of(raw: bytes) -> Event:
    lines = re.split(r"\r\n|\n|\r", raw.decode("utf-8", "replace"))
    data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
    try:
        value = json.loads("\n".join(data)) if data else None
    except (ValueError, RecursionError):
        value = None
    return Event(raw, value if isinstance(value, dict) else None)
