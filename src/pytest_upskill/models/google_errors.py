"""What Google's errors say beside their status, in a list of details."""

import re
from collections.abc import Iterator
from typing import Any, Final

_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


def is_of_key(error: object) -> bool:
    """Whether a bad request is one for its key, for which others have a status."""
    return any(detail.get("reason") == "API_KEY_INVALID" for detail in _details(error))


def is_used_up(error: object) -> bool:
    """Whether the quota of a day is used up, or there is none: waiting takes too long."""
    quotas = [quota for detail in _details(error) for quota in _dicts(detail.get("violations"))]
    return any("PerDay" in str(one.get("quotaId")) for one in quotas)


def retry_delay(error: object) -> float | None:
    """The seconds after which it may go on."""
    for detail in _details(error):
        if match := _SECONDS.fullmatch(str(detail.get("retryDelay"))):
            return float(match[1])
    return None


def _details(error: object) -> Iterator[dict[str, Any]]:
    return _dicts(error.get("details")) if isinstance(error, dict) else iter(())


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())
