"""What tokens cost: from the data of genai-prices, or from the setting ``prices``.

genai-prices is imported only if a hosted model needs a price. Its data are those of the
installed version; its updater is never started.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ..errors import SettingsError
from ..trials.answer import SideCalls, Usage
from ..trials.records import Record

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

_FORM: Final = (
    "Write NAME INPUT OUTPUT [CACHED [WRITTEN]], in USD per million tokens, as in: "
    "haiku 1.00 5.00 0.10"
)
_MILLION: Final = 1_000_000
_WRITTEN: Final = 1.25  # of the input price, for tokens written to the cache
_HOUR: Final = 2.0  # of the input price, for tokens cached for an hour
# Suffixes of a model's id that name a version of it.
_OF_BEDROCK: Final = re.compile(r"^[a-z-]+\.(?=anthropic\.)|(?<=\d)-v\d(:\d)?$")
_EDITION: Final = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


@dataclass(frozen=True)
class Price:
    """USD per million tokens.

    ``steps`` are the prices of longer prompts, by the number of input tokens from which
    they apply to all tokens of a call, in ascending order. ``written``: for input that
    goes to the provider's cache; None if it costs the same.
    """

    input: float
    output: float
    cached: float
    steps: tuple[tuple[int, "Price"], ...] = ()
    written: float | None = None


ON_A_PLAN: Final = "at list price, on a plan"  # costs of what was asked on a login
FREE: Final = Price(0, 0, 0)

PriceOf = Callable[[str], Price | None]  # by the name of a model


def cost(price: Price | None, usage: Usage) -> float | None:
    """USD of one answer, None if the price or the usage is unknown."""
    if price is None:
        return None
    if price == FREE:  # whatever the usage
        return 0.0
    if usage.input is None or usage.output is None:
        return None
    for start, dearer in price.steps:
        if usage.input > start:
            price = dearer
    cached = min(usage.cached or 0, usage.input)
    written = min(usage.written or 0, usage.input - cached)
    fresh = usage.input - cached - written
    to_cache = price.input if price.written is None else price.written
    read = fresh * price.input + cached * price.cached + written * to_cache
    if price.written:
        read += min(usage.hour or 0, written) * (_HOUR / _WRITTEN - 1) * price.written
    return (read + usage.output * price.output) / _MILLION


def priced(record: Record, price_of: PriceOf) -> Record:
    """A record with what it cost, and its judge and user."""

    def with_cost(calls: SideCalls | None) -> SideCalls | None:
        usd = cost(price_of(calls.model), calls.usage) if calls else None
        return calls and replace(calls, cost=usd)

    return replace(
        record,
        cost=cost(price_of(record.model), record.usage),
        judge=with_cost(record.judge),
        user=with_cost(record.user),
    )


def saved_by_cache(price: Price | None, usage: Usage) -> float:
    """USD that the provider's cache saved in one answer,
    less the extra cost of writing to it.
    """
    with_cache = cost(price, usage)
    without = cost(price, replace(usage, cached=0, written=0))
    return 0.0 if with_cache is None or without is None else without - with_cache


def parse_prices(lines: Iterable[str]) -> dict[str, Price]:
    """Prices from lines of text, or SettingsError for the first invalid line."""
    prices: dict[str, Price] = {}
    for line in lines:
        words, shown = line.split(), repr(line.strip())
        if not 3 <= len(words) <= 5:
            raise _error(shown, "not a name with two to four prices", _FORM)
        name, *numbers = words
        if name in prices:
            raise _error(shown, f"{name} has a price already", "Remove one of the two.")
        read, answer, *optional = (_number(number, shown) for number in numbers)
        # Without a price, cached tokens get no discount, and written
        # ones cost a quarter more.
        cached, written = (*optional, *(read, _WRITTEN * read)[len(optional) :])
        free = not any((read, answer, cached, written))
        prices[name] = FREE if free else Price(read, answer, cached, written=written)
    return prices


def _error(line: str, problem: str, hint: str) -> SettingsError:
    return SettingsError("prices", problem, hint, value=line)


def _number(text: str, line: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise _error(line, f"{text!r} is not a price of 0 or more", _FORM)
    return number


def listed_price(provider_id: str, model_id: str) -> Price | None:
    """The price of a model by the provider's id in genai-prices;
    None if it is not there.
    """
    from genai_prices.data import providers  # slow to import

    # Only this provider: else it would fall back to the price of another.
    models = (p.find_model(model_id) for p in providers if p.id == provider_id)
    model = next(models, None)
    if model is None or not _is_meant(model, model_id.lower()):
        return None
    return _price(model.get_prices(datetime.now(UTC)))


def _is_meant(model: "ModelInfo", ref: str) -> bool:
    """Whether a match is more than a common prefix.

    genai-prices matches some models by prefix: a claude-opus-4-5-turbo, if there ever
    is one, would get the price of claude-opus-4-5.
    """
    plain = _plain(ref)
    if plain == _plain(model.id.lower()):
        return True
    return any(
        model.is_match(text) and not model.is_match(f"{text}-x")
        for text in (ref, plain)
    )


def _plain(ref: str) -> str:
    return _EDITION.sub("", _OF_BEDROCK.sub("", ref))


def _price(listed: "ModelPrice") -> Price | None:
    read, answer = listed.input_mtok, listed.output_mtok
    if read is None or answer is None:  # a model for images or audio
        return None
    cached = read if listed.cache_read_mtok is None else listed.cache_read_mtok
    written = listed.cache_write_mtok
    rates = (read, answer, cached, *([] if written is None else [written]))
    starts = {
        tier.start
        for rate in rates
        if not isinstance(rate, Decimal)
        for tier in rate.tiers
    }
    base, *dearer = (
        Price(
            _rate(read, size),
            _rate(answer, size),
            _rate(cached, size),
            written=None if written is None else _rate(written, size),
        )
        for size in (0, *(start + 1 for start in sorted(starts)))
    )
    return replace(base, steps=tuple(zip(sorted(starts), dearer, strict=True)))


def _rate(rate: "Decimal | TieredPrices", input_tokens: int) -> float:
    if isinstance(rate, Decimal):
        return float(rate)
    reached = [tier.price for tier in rate.tiers if input_tokens > tier.start]
    return float(reached[-1] if reached else rate.base)
