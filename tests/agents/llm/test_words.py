"""The words are kept in journals: what is written comes back the same."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.agents.llm.allowance import Allowance, Quota
from bullpen.agents.llm.deltas import CallDelta, Delta, End, Gathering, Restarted, Started, TextDelta, UsageDelta
from bullpen.agents.llm.words import (
    Conversation,
    Message,
    Reply,
    Request,
    Role,
    StopReason,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    check_request,
    results,
    system,
    user,
)
from bullpen.errors import BadOption
from tests.agents.llm.asking import WEATHER

_ALLOWANCE = Allowance(requests=Quota(10, 9, 1_000), retry_at_ms=5)
_CALL = ToolCall("a", "weather", '{"place": "Bern"}')


@pytest.mark.parametrize(
    "word",
    [
        Request(
            model="gpt",
            messages=(system("s"), user("u"), assistant("a", _CALL), results(ToolResult("a", "r", is_error=True))),
            tools=(WEATHER,),
            tool_choice="weather",
            max_tokens=5,
            temperature=0.1,
            stop=("x",),
            idempotency_key="k",
            metadata={"user": "u"},
        ),
        Reply(
            model="gpt",
            text="t",
            calls=(_CALL,),
            stop=StopReason.TOOL_CALLS,
            stop_word="tool_calls",
            usage=Usage(1, 2, 3, 4, 5),
            request_id="r",
            allowance=_ALLOWANCE,
        ),
        Message(Role.USER),
    ],
    ids=lambda word: type(word).__name__,
)
def test_a_word_comes_back_from_json(word: msgspec.Struct) -> None:
    assert msgspec.json.decode(msgspec.json.encode(word), type=type(word)) == word


@pytest.mark.parametrize(
    "delta",
    [
        Started("gpt", "r", _ALLOWANCE),
        TextDelta("t"),
        CallDelta(1, "a", "weather", "{"),
        UsageDelta(Usage(1)),
        End(StopReason.OTHER, "odd"),
        Restarted("cut"),
    ],
    ids=lambda delta: type(delta).__name__,
)
def test_a_delta_comes_back_from_json(delta: Delta) -> None:
    assert msgspec.json.decode(msgspec.json.encode(delta), type=Delta) == delta


@given(st.lists(st.text(max_size=5), max_size=10), st.lists(st.text(max_size=5), max_size=5))
def test_pieces_make_the_whole(texts: list[str], arguments: list[str]) -> None:
    gathering = Gathering()
    deltas: list[Delta] = [
        TextDelta("void"),
        CallDelta(7, "void", "void", "void"),
        Restarted("cut"),
        *map(TextDelta, texts),
        *(CallDelta(0, "a", "weather", piece) for piece in arguments),
        End(StopReason.ANSWER),
    ]
    for delta in deltas:
        gathering.take(delta)
    reply = gathering.reply()
    assert reply.text == "".join(texts)
    assert [call.arguments for call in reply.calls] == (["".join(arguments) or "{}"] if arguments else [])


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50) == Usage(11, 22, 33, 44, 55)
    assert Usage(1, 2, 3, 4, 5).total_tokens == 3


def test_a_conversation_is_checked_as_it_grows() -> None:
    asked = Conversation([user("u")]).then(assistant("a", _CALL))
    with pytest.raises(BadOption, match=r"^messages\[2\]: the calls before it have no results: a"):
        asked.then(user("and?"))
    with pytest.raises(BadOption, match=r"^messages\[2\]: has a result for a call that the message before did not"):
        asked.then(results(ToolResult("b", "r")))
    with pytest.raises(BadOption, match=r"^messages: the last calls have no results: a"):
        check_request(Request(model="gpt", messages=asked))
    answered = asked.then(results(ToolResult("a", "r")), assistant("done"))
    check_request(Request(model="gpt", messages=answered))
    with pytest.raises(BadOption, match=r"^messages\[4\]: has a result"):
        answered.then(results(ToolResult("a", "r")))
