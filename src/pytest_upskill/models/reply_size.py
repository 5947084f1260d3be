"""A limit on the size of replies, so that no server can fill the memory or hang a run.

It is enforced while a reply is read, whatever its status: a body may have no end, and a
few megabytes may unpack to gigabytes. JSON of many small values takes a hundred times
its size as objects, and the SDKs minutes to make them.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

from .._util.json_forms import about_values

# No answer comes near these limits, thinking included.
MOST_BYTES: Final = 16_000_000
MOST_VALUES: Final = 10_000

_Read = Callable[..., AsyncGenerator[bytes]]


class TooLarge(Exception):
    """A reply is larger than any answer."""


async def limit_size(response: Any) -> None:
    """A hook of the SDKs' HTTP clients, which call it before they use a response."""
    response.aiter_raw = _limited(response.aiter_raw)  # as it arrives
    response.aiter_bytes = _limited(response.aiter_bytes)  # unpacked, a part at a time
    check_values(await response.aread())


def check_values(body: bytes, most: int | None = None) -> None:
    """TooLarge if this is JSON of more than ``most`` values."""
    most = most or MOST_VALUES
    if body.lstrip()[:1] in (b"{", b"[") and about_values(body, most) > most:
        raise TooLarge


def _limited(read: _Read) -> _Read:
    async def parts(*args: Any) -> AsyncGenerator[bytes]:
        size = 0
        async with aclosing(read(*args)) as source:
            async for part in source:
                size += len(part)
                if size > MOST_BYTES:
                    raise TooLarge
                yield part

    return parts
