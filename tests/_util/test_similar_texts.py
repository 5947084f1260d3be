"""Texts that are nearly the same."""

from itertools import combinations
from random import Random

import pytest

from pytest_upskill._util.similar_texts import (
    _share_most,
    _split_into_grams,
    find_similar,
)

WORDS = ["gate", "hinge", "harbour", "crate", "lamp", "oil", "ledger", "anchor"]


def random_text(random: Random, words: int) -> str:
    return " ".join(random.choices(WORDS, k=words))


@pytest.mark.parametrize("words", [1, 8, 60])
def test_pairs_that_share_most_are_found(words: int) -> None:
    random = Random(words)
    for _ in range(50):
        text = random_text(random, words)
        variant = f"{text} {random.choice(WORDS)}"
        others = [random_text(random, words) for _ in range(3)]
        texts = [text, *others, variant]

        similar = set(find_similar(texts))
        grams = [_split_into_grams(text) for text in texts]
        for first, second in combinations(range(len(texts)), 2):
            if (first, second) in similar:
                assert _share_most(grams[first], grams[second])
        shared = len(grams[0] & grams[4]) / len(grams[0] | grams[4])
        if shared >= 0.81:
            assert 4 in {second for _, second in similar}


def test_the_first_of_several_stands_for_all() -> None:
    texts = [
        "Open the gate, please.",
        "Something else.",
        *["open THE gate, please."] * 9,
    ]
    assert list(find_similar(texts)) == [(0, number) for number in range(2, 11)]


def test_odd_texts_are_compared() -> None:
    assert list(find_similar(["", "?", "\ud800", "", "?", "\ud800"])) == [
        (0, 3),
        (1, 4),
        (2, 5),
    ]


@pytest.mark.nightly
def test_thousands_of_texts_take_seconds() -> None:
    random = Random(3)
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(random.choices(alphabet, k=6)) for _ in range(2000)]
    texts = ["Write it: " + " ".join(random.choices(words, k=60)) for _ in range(3000)]
    assert list(find_similar(texts)) == []
