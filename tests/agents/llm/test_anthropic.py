"""The messages API, against a server that speaks it, well and badly."""

import functools
from typing import Any

import pytest

from bullpen import (
    AnswerBroken,
    BadAnswer,
    ContextTooLong,
    ModelAccess,
    ModelError,
    ModelLimited,
    ModelOverloaded,
)
from bullpen.agents.llm.anthropic import AnthropicProvider
from bullpen.agents.llm.deltas import End, Started, TextDelta, UsageDelta
from bullpen.agents.llm.provider import complete
from bullpen.agents.llm.words import StopReason, ToolCall, ToolResult, Usage, assistant, results, system, user
from tests.agents.llm.anthropic_server import READ, events, start, stop, text, tool, words
from tests.agents.llm.asking import KEY, WEATHER, ask, deltas_of, endpoint, reply_by
from tests.agents.llm.openai_server import whole
from tests.agents.llm.wire_server import Answer, serving

reply_to = functools.partial(reply_by, AnthropicProvider)


async def test_text_comes_in_pieces_and_usage_counts_what_the_cache_gave() -> None:
    async with serving(words("Hel", "lo")) as server:
        provider = AnthropicProvider(endpoint(server.url))
        deltas = await deltas_of(provider, ask())
        await provider.close()
    read = Usage(input_tokens=25, output_tokens=1, cached_input_tokens=12, cache_write_tokens=5)
    assert deltas == [
        Started("gpt", provider="anthropic"),
        UsageDelta(read),
        TextDelta("Hel"),
        TextDelta("lo"),
        UsageDelta(Usage(25, 7, 12, 5)),
        End(StopReason.ANSWER, "end_turn"),
    ]


@pytest.mark.parametrize("reason", ["end_turn", "tool_use", "stop_sequence", "pause_turn"])
async def test_an_empty_answer_is_none(reason: str) -> None:
    with pytest.raises(BadAnswer, match="empty answer"):
        await reply_to(Answer(chunks=events(start(), *stop(reason))))


async def test_what_is_sent() -> None:
    conversation = (
        system("Be brief."),
        user("Weather?"),
        assistant("Let me see.", ToolCall("a", "weather", '{"place":"Bern"}'), ToolCall("b", "weather", "Chur")),
        results(ToolResult("a", "sunny"), ToolResult("b", "not JSON", is_error=True)),
        user("Go on."),
    )
    request = ask(
        messages=conversation,
        tools=(WEATHER,),
        tool_choice="any",
        parallel_calls=False,
        temperature=1.5,
        stop=("END",),
        idempotency_key="run-1/3",
        metadata={"user": "u7"},
    )
    async with serving(words("ok")) as server:
        provider = AnthropicProvider(endpoint(server.url), caches=True)
        await complete(provider, request)
        await provider.close()
        (asked,) = server.asked
    assert asked.path == "/v1/messages"
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert asked.headers["idempotency-key"] == "run-1/3"
    assert asked.body == {
        "model": "gpt",
        "max_tokens": 4096,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "a", "name": "weather", "input": {"place": "Bern"}},
                    {"type": "tool_use", "id": "b", "name": "weather", "input": {"not_json": "Chur"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "sunny"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "not JSON", "is_error": True},
                    {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
        "tools": [{"name": "weather", "description": "Tells the weather", "input_schema": WEATHER.parameters}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "temperature": 1.0,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u7"},
        "stream": True,
    }


async def test_parallel_calls_whose_arguments_come_in_pieces() -> None:
    said = [
        start(),
        *text(0, "One moment."),
        *tool(1, "a", "weather", '{"place": "B', 'ern"}'),
        *tool(2, "b", "weather"),
        *stop("tool_use"),
    ]
    reply = await reply_to(Answer(chunks=events(*said)))
    assert (reply.text, reply.stop) == ("One moment.", StopReason.TOOL_CALLS)
    assert reply.calls == (ToolCall("a", "weather", '{"place": "Bern"}'), ToolCall("b", "weather", "{}"))


async def test_what_is_new_to_us_is_passed_over() -> None:
    thinking = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "confetti", "colour": "red"},
    ]
    said = [start(), *thinking, *text(1, "Hi"), *stop("pause_turn")]
    reply = await reply_to(Answer(chunks=events(*said)))
    assert (reply.text, reply.stop, reply.stop_word) == ("Hi", StopReason.OTHER, "pause_turn")


@pytest.mark.parametrize(
    "word,said,reason",
    [
        ("max_tokens", [], StopReason.MAX_TOKENS),
        ("stop_sequence", text(0, "Hi"), StopReason.STOP_TEXT),
        ("refusal", [], StopReason.REFUSED),
    ],
)
async def test_why_it_stopped(word: str, said: list[dict[str, Any]], reason: StopReason) -> None:
    assert (await reply_to(Answer(chunks=events(start(), *said, *stop(word))))).stop == reason


async def test_a_server_that_does_not_stream_answers_as_one() -> None:
    content = [
        {"type": "text", "text": "Hm."},
        {"type": "tool_use", "id": "a", "name": "weather", "input": {"place": "Bern"}},
    ]
    reply = await reply_to(whole({"content": content, "stop_reason": "tool_use", "usage": READ}), streams=False)
    assert reply.calls == (ToolCall("a", "weather", '{"place":"Bern"}'),)
    assert reply.usage.input_tokens == 25


async def test_no_usage_is_told_as_none() -> None:
    end = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    assert (await reply_to(Answer(chunks=events(start(None), *text(0, "Hi"), *end)))).usage is None


async def test_without_its_last_event_an_answer_broke_off() -> None:
    """Even where the reason to stop has come: the usage may not have."""
    with pytest.raises(AnswerBroken, match="2 characters of text") as caught:
        await reply_to(Answer(chunks=events(start(), *text(0, "Hi"), *stop()[:1])))
    assert caught.value.usage == Usage(25, 7, 12, 5)


@pytest.mark.parametrize(
    "kind,error",
    [("overloaded_error", ModelOverloaded), ("rate_limit_error", ModelLimited), ("api_error", ModelError)],
)
async def test_an_error_in_the_midst_of_a_stream(kind: str, error: type[ModelError]) -> None:
    told = {"type": "error", "error": {"type": kind, "message": "Too much"}}
    with pytest.raises(ModelError, match="Too much") as caught:
        await reply_to(Answer(chunks=events(start(), *text(0, "Hi"), told)))
    assert type(caught.value) is error
    assert caught.value.may_cost
    assert caught.value.usage == Usage(25, 1, 12, 5)


async def test_arguments_of_a_call_that_never_began_make_no_sense() -> None:
    with pytest.raises(BadAnswer, match="never began"):
        await reply_to(Answer(chunks=events(start(), *tool(3, "a", "weather", "{}")[1:])))


@pytest.mark.parametrize(
    "status,error,kind",
    [
        (400, {"type": "invalid_request_error", "message": "prompt is too long: 300000 tokens"}, ContextTooLong),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low"}, ModelAccess),
        (401, {"type": "authentication_error", "message": "invalid x-api-key"}, ModelAccess),
        (413, {"type": "request_too_large", "message": "big"}, ContextTooLong),
        (429, {"type": "rate_limit_error", "message": "slow"}, ModelLimited),
        (500, {"type": "api_error", "message": "oops"}, ModelError),
        (529, {"type": "overloaded_error", "message": "Overloaded"}, ModelOverloaded),
    ],
)
async def test_each_refusal_is_an_error_of_its_kind(status: int, error: dict[str, str], kind: type[ModelError]) -> None:
    with pytest.raises(ModelError) as caught:
        await reply_to(whole({"type": "error", "error": error}, status))
    assert type(caught.value) is kind
    assert not caught.value.may_cost


async def test_a_limit_says_when_to_come_back() -> None:
    with pytest.raises(ModelLimited) as caught:
        await reply_to(whole({"error": {"message": "slow"}}, 429, retry_after="0.5"))
    assert caught.value.retry_after == 0.5


def test_tools_that_are_not_to_be_called_are_told_all_the_same() -> None:
    """What was called before is in the conversation: providers refuse calls of tools that they were not told of."""
    body = AnthropicProvider(endpoint("http://localhost")).body(ask(tools=(WEATHER,), tool_choice="none"))
    assert (len(body["tools"]), body["tool_choice"]) == (1, {"type": "none"})
