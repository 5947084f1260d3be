"""Which of many texts are nearly the same: variants of one prompt, say."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final
from zlib import crc32

from .texts import as_read

# Variants of a prompt shared 0.81 or more of their 4-grams, different ones of the same
# suite at most 0.53.
_SHARED: Final = 0.7
_GRAM: Final = 4
_BINS: Final = 64
_BAND: Final = 4


def find_similar(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of an earlier text and one that is nearly the same, by their numbers.

    The first of several stands for all. Only texts with a band in common are compared:
    of those that share 0.7, 99 % have one.
    """
    grams = [_split_into_grams(text) for text in texts]
    by_band: dict[tuple[int, ...], list[int]] = {}
    for number, own in enumerate(grams):
        bands = _make_bands(own)
        earlier = {other for band in bands for other in by_band.get(band, ())}
        alike = [other for other in earlier if _share_most(grams[other], own)]
        if alike:
            yield min(alike), number
            continue

        for band in bands:
            by_band.setdefault(band, []).append(number)


def _split_into_grams(text: str) -> frozenset[str]:
    plain = as_read(text)
    last = max(1, len(plain) - _GRAM + 1)
    return frozenset(plain[start : start + _GRAM] for start in range(last))


def _share_most(first: frozenset[str], second: frozenset[str]) -> bool:
    shared = len(first & second)
    return shared >= _SHARED * (len(first) + len(second) - shared)


def _make_bands(grams: Collection[str]) -> list[tuple[int, ...]]:
    """Bands of a MinHash: the least hash in each bin is the same in two sets as often
    as their grams are.
    """
    least = [-1] * _BINS
    for gram in grams:
        value = crc32(gram.encode("utf-8", "surrogatepass"))
        number = value % _BINS
        if least[number] < 0 or value < least[number]:
            least[number] = value

    bands = []
    for start in range(0, _BINS, _BAND):
        band = least[start : start + _BAND]
        # Short texts leave bins empty, which does not make them alike.
        if max(band) >= 0:
            bands.append((start, *band))
    return bands
