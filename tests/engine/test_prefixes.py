"""Which questions wait until their start is in the provider's cache,
and what it should keep.
"""

from pytest_upskill.engine.prefixes import Prefixes, PrefixUse
from pytest_upskill.trials.transcript import Tool
from pytest_upskill.trials.trial import Question

LONG = "word " * 1000  # 1,250 tokens


def question(text: str = "short", system: str = LONG, **more: object) -> Question:
    return Question("m", system, (("user", text),), 100, 1, **more)  # type: ignore[arg-type]


def uses_of(prefixes: Prefixes, *questions: Question) -> list[PrefixUse]:
    return [prefixes.add(one) for one in questions]


def three(prefixes: Prefixes) -> list[PrefixUse]:
    return uses_of(prefixes, *(question(f"number {n}") for n in range(3)))


def test_the_first_goes_ahead_and_the_rest_wait_until_it_is_answered() -> None:
    prefixes = Prefixes(1024)
    first, second, third = three(prefixes)
    assert first.waits_until(0) <= 0
    assert first.start(5) == ("system",)
    assert second.waits_until(5) > 5
    first.answered(5)
    assert first.end()
    assert second.waits_until(7) <= 7
    assert second.start(7) == ("system",)
    assert third.waits_until(7) <= 7  # it is warm, so nobody waits for the second
    second.answered(7)
    assert not second.end()
    assert third.start(8) == ("system",)  # the last one still reads it


def test_two_uses_are_neither_marked_nor_waited_for() -> None:
    prefixes = Prefixes(1024)
    first, second = three(prefixes)[:2]
    for one in first.prefixes:
        one.unanswered = 2
    assert first.start(0) == ()
    assert second.waits_until(0) <= 0
    first.answered(0)
    first.end()
    # Nothing was kept, so there is nothing to read
    assert second.start(1) == ()


def test_short_texts_and_servers_without_a_cache_share_nothing() -> None:
    assert Prefixes(1024).add(question(system="Be brief.")).prefixes == ()
    assert Prefixes(None).add(question()).prefixes == ()
    assert Prefixes(4096).add(question()).prefixes == ()


def test_other_texts_do_not_wait() -> None:
    prefixes = Prefixes(1024)
    first, *_ = three(prefixes)
    (other,) = uses_of(prefixes, question(system=f"Other {LONG}"))
    first.start(0)
    assert other.waits_until(0) <= 0
    schema = uses_of(prefixes, question(schema="{}"))[0]
    assert schema.waits_until(0) <= 0  # it is part of what the server reads


def test_nobody_waits_for_long() -> None:
    prefixes = Prefixes(1024)
    first, second, third = three(prefixes)
    first.start(100)
    until = second.waits_until(100)
    assert 100 < until <= 110
    assert second.waits_until(until) <= until
    assert second.start(until) == ("system",)
    assert third.waits_until(until) <= until


def test_after_a_failure_the_next_goes_ahead() -> None:
    prefixes = Prefixes(1024)
    first, second, third = three(prefixes)
    first.start(0)
    assert first.end()
    assert second.waits_until(1) <= 1
    second.start(1)
    assert third.waits_until(1) > 1


def test_a_cache_is_cold_after_five_minutes_without_use() -> None:
    prefixes = Prefixes(1024)
    uses = uses_of(prefixes, *(question(str(n)) for n in range(9)))
    uses[0].start(0)
    uses[0].answered(0)
    uses[0].end()
    uses[1].start(250)  # a read makes it live longer
    assert uses[2].waits_until(500) <= 500
    assert uses[2].start(500) == ("system",)
    assert uses[3].waits_until(900) <= 900
    uses[3].start(900)
    assert uses[4].waits_until(900) > 900


def test_a_long_question_that_is_asked_again_and_again_is_kept_too() -> None:
    prefixes = Prefixes(1024)
    # As by a judge with three votes
    same = [question(LONG, "Be brief.") for _ in range(3)]
    first, second, _ = uses_of(prefixes, *same)
    assert first.start(0) == ("messages",)
    assert second.waits_until(0) > 0
    both = Prefixes(1024)
    first, *_ = uses_of(both, *(question(LONG) for _ in range(3)))
    assert first.start(0) == ("system", "messages")


def test_tools_belong_to_the_start() -> None:
    prefixes = Prefixes(1024)
    tool = Tool("skill", LONG, "{}")
    (use,) = uses_of(prefixes, question(system="", tools=(tool,)))
    assert [one.part for one in use.prefixes] == ["system"]
