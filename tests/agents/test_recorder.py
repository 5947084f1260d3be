"""The transcript of a trial."""

import pytest

from pytest_upskill._util.keys import know
from pytest_upskill.agents.recorder import LONGEST_TURN, Recorder
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import ToolCall
from pytest_upskill.trials.trial import Question

QUESTION = Question("haiku", "", (("user", "Open the gate."),), 1000, 1)
LS = ToolCall("c1", "bash", '{"command": "ls"}')
CAT = ToolCall("c2", "bash", '{"command": "cat a"}')


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(QUESTION, price=lambda usage: (usage.output or 0) / 1000)


def told(recorder: Recorder) -> list[tuple[str, str]]:
    return [(turn.kind, turn.text) for turn in recorder.transcript]


def test_a_result_follows_its_call(recorder: Recorder) -> None:
    recorder.system("Be brief.")
    recorder.message("user", "Open the gate.")
    recorder.reply(
        Answer(
            "I look.",
            Usage(100, 20, 5),
            calls=(
                LS,
                CAT,
            ),
            thinking="Hm.",
        ),
        1.5,
    )
    recorder.result("c2", "no such file", failed=True, seconds=0.2)
    recorder.result("c1", "a.txt", failed=False, seconds=0.1)
    recorder.reply(Answer("Done.", Usage(150, 10, 90)), 0.5)
    assert told(recorder) == [
        ("system", "Be brief."),
        ("user", "Open the gate."),
        ("thinking", "Hm."),
        ("assistant", "I look."),
        ("call", '{"command": "ls"}'),
        ("result", "a.txt"),
        ("call", '{"command": "cat a"}'),
        ("result", "no such file"),
        ("assistant", "Done."),
    ]
    assert [turn.reply for turn in recorder.transcript] == [0, 0, 1, 1, 1, 1, 1, 1, 2]
    assert [turn.failed for turn in recorder.transcript].index(True) == 7
    first = recorder.transcript[2]
    assert (first.seconds, first.input_tokens, first.output_tokens) == (1.5, 100, 20)
    assert first.cost == 0.02
    assert recorder.transcript[3].input_tokens is None
    answer = recorder.answer("end")
    assert (answer.text, answer.usage, answer.stop) == (
        "Done.",
        Usage(250, 30, 95),
        "end",
    )
    assert answer.activity is not None
    assert (answer.activity.turns, answer.activity.tool_calls) == (2, 2)
    assert answer.activity.activated is None


def test_what_is_told_again_counts_once(recorder: Recorder) -> None:
    for _ in range(3):  # as a CLI sends it, request by request
        recorder.system("Be brief.")
        recorder.message("user", "Open the gate.")
        if recorder.turns == 0:
            recorder.reply(Answer("I look.", calls=(LS,)))
        recorder.message("assistant", "I look.")
        recorder.result("c1", "a.txt", failed=False)
    assert [kind for kind, _ in told(recorder)] == [
        "system",
        "user",
        "assistant",
        "call",
        "result",
    ]


def test_calls_with_the_same_id_get_their_results_in_order(recorder: Recorder) -> None:
    calls = [ToolCall("", "bash", f'{{"command": "echo {n}"}}') for n in range(3)]
    recorder.reply(Answer("", calls=tuple(calls)))
    for number in range(3):
        recorder.result("", str(number), failed=False)
    results = [text for kind, text in told(recorder) if kind == "result"]
    assert results == ["0", "1", "2"]


def test_the_result_of_an_unknown_call_is_kept(recorder: Recorder) -> None:
    recorder.result("c9", "odd", failed=False)
    recorder.result("c9", "odd", failed=False)
    assert told(recorder) == [("result", "odd")]


def test_a_reply_without_anything_is_a_turn(recorder: Recorder) -> None:
    recorder.reply(Answer("", Usage(5, 0, 0)))
    assert told(recorder) == [("assistant", "")]
    assert recorder.transcript[0].input_tokens == 5


def test_long_texts_are_cut_in_the_middle(recorder: Recorder) -> None:
    recorder.reply(Answer("", calls=(LS,)))
    recorder.result("c1", "start" + "x" * 10_000_000 + "end", failed=False)
    text = recorder.transcript[-1].text
    assert len(text) < LONGEST_TURN + 100
    assert text.startswith("start")
    assert text.endswith("end")
    assert "characters left out …]" in text


def test_an_endless_transcript_is_bounded(recorder: Recorder) -> None:
    for number in range(300):
        call = ToolCall(str(number), "bash", "{}")
        recorder.reply(Answer("", calls=(call,)))
        recorder.result(str(number), "y" * LONGEST_TURN, failed=False)
    assert sum(len(turn.text) for turn in recorder.transcript) < 5_000_000


def test_keys_are_masked(recorder: Recorder) -> None:
    know("sk-very-secret-4711")
    recorder.system("sk-very-secret-4711")
    call = ToolCall(
        "1", "sk-very-secret-4711", '{"command": "echo sk-very-secret-4711"}'
    )
    recorder.reply(
        Answer("sk-very-secret-4711", calls=(call,), thinking="sk-very-secret-4711")
    )
    recorder.result("1", "x" * LONGEST_TURN + "sk-very-secret-4711", failed=False)
    recorder.add_finding("refused sk-very-secret-4711")
    assert "very-secret" not in repr(recorder.answer("end"))


def test_findings_are_kept_once(recorder: Recorder) -> None:
    recorder.add_finding("path /v1/files was refused")
    recorder.add_finding("path /v1/files was refused")
    assert recorder.activity.findings == ("path /v1/files was refused",)


def test_usage_is_unknown_if_one_reply_does_not_tell(recorder: Recorder) -> None:
    recorder.reply(Answer("a", Usage(5, 6, 0)))
    recorder.reply(Answer("b"))
    assert recorder.usage.input is None
