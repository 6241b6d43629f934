"""Chat completions, against a server that speaks them, well and badly."""

import functools
from typing import Any

import pytest

from bullpen import (
    AnswerBroken,
    BadAnswer,
    BadData,
    BadOption,
    CallRefused,
    ContentRefused,
    ContextTooLong,
    ModelAccess,
    ModelError,
    ModelLimited,
    ModelOverloaded,
    ModelTimeout,
    ModelUnknown,
)
from bullpen.agents.llm.deltas import End, Started, TextDelta, UsageDelta
from bullpen.agents.llm.endpoint import Endpoint
from bullpen.agents.llm.openai import OpenAIProvider
from bullpen.agents.llm.provider import complete
from bullpen.agents.llm.words import StopReason, ToolCall, ToolResult, Usage, assistant, results, system, user
from tests.agents.llm.asking import KEY, WEATHER, ask, deltas_of, endpoint, reply_by
from tests.agents.llm.openai_server import call, chunk, data, stream, used, whole, words
from tests.agents.llm.wire_server import Answer, serving

reply_to = functools.partial(reply_by, OpenAIProvider)


async def test_text_comes_in_pieces_and_usage_from_the_wire() -> None:
    async with serving(stream(words("Hel", "lo", "."), x_request_id="req-9")) as server:
        provider = OpenAIProvider(endpoint(server.url))
        deltas = await deltas_of(provider, ask())
        await provider.close()
    usage = Usage(input_tokens=20, output_tokens=7, cached_input_tokens=12, reasoning_tokens=3)
    assert deltas == [
        Started("gpt", "req-9", provider="openai"),
        *(TextDelta(text) for text in ("Hel", "lo", ".")),
        UsageDelta(usage),
        End(StopReason.ANSWER, "stop"),
    ]


async def test_what_is_sent() -> None:
    conversation = (
        system("Be brief."),
        user("Weather?"),
        assistant("", ToolCall("a", "weather", '{"place":"Bern"}'), ToolCall("b", "weather", "{}")),
        results(ToolResult("a", "sunny"), ToolResult("b", "no place", is_error=True)),
        user("Thanks."),
    )
    request = ask(
        messages=conversation,
        tools=(WEATHER,),
        tool_choice="weather",
        parallel_calls=False,
        max_tokens=50,
        temperature=0.5,
        stop=("END",),
        idempotency_key="run-1/3",
        metadata={"user": "u7", "run": "not told"},
    )
    async with serving(stream(words("ok"))) as server:
        provider = OpenAIProvider(endpoint(server.url, query={"api-version": "7"}, headers={"x-gate": "g"}))
        await complete(provider, request)
        await provider.close()
        (asked,) = server.asked
    assert asked.path == "/v1/chat/completions?api-version=7"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["idempotency-key"] == "run-1/3"
    assert asked.headers["x-gate"] == "g"
    function = {"name": "weather", "description": "Tells the weather", "parameters": WEATHER.parameters}
    assert asked.body == {
        "model": "gpt",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"place":"Bern"}'}},
                    {"id": "b", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "sunny"},
            {"role": "tool", "tool_call_id": "b", "content": "Error: no place"},
            {"role": "user", "content": "Thanks."},
        ],
        "max_tokens": 50,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "stop": ["END"],
        "user": "u7",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_openai_and_azure_know_the_limit_by_its_new_name() -> None:
    for host in ("api.openai.com", "mine.openai.azure.com"):
        provider = OpenAIProvider(Endpoint(base_url=f"https://{host}/v1", key=KEY))
        assert provider.body(ask(max_tokens=9))["max_completion_tokens"] == 9


async def test_parallel_calls_whose_arguments_come_in_pieces() -> None:
    pieces = [
        chunk(role="assistant", content=None, tool_calls=[call(0, "a", "weather", "")]),
        chunk(tool_calls=[call(0, arguments='{"pla')]),
        chunk(tool_calls=[call(1, "b", "weather", '{"place":'), call(0, arguments='ce":"Bern"}')]),
        chunk(tool_calls=[call(1, arguments=' "Genève"}')]),
        chunk("tool_calls"),
        used(),
        "[DONE]",
    ]
    reply = await reply_to(stream(data(*pieces)))
    assert reply.stop == StopReason.TOOL_CALLS
    assert [(one.id, one.parsed()) for one in reply.calls] == [("a", {"place": "Bern"}), ("b", {"place": "Genève"})]


@pytest.mark.parametrize(
    "indices", [(0, 0), (None, None)], ids=["all of index 0", "no index"]
)  # both seen from Ollama, by version
async def test_whole_calls_without_a_number_of_their_own(indices: tuple[int | None, int | None]) -> None:
    first, second = indices
    pieces = [
        chunk(content="", tool_calls=[call(first, "a", "weather", '{"place":"Bern"}')]),
        chunk(content="", tool_calls=[call(second, "b", "weather", '{"place":"Chur"}')]),
        chunk("stop"),
    ]
    reply = await reply_to(stream(data(*pieces, "[DONE]")))
    assert [(one.id, one.arguments) for one in reply.calls] == [("a", '{"place":"Bern"}'), ("b", '{"place":"Chur"}')]
    assert reply.stop == StopReason.TOOL_CALLS, "the server said stop"


async def test_a_call_without_an_id_or_arguments_can_still_be_answered() -> None:
    reply = await reply_to(stream(data(chunk(tool_calls=[call(0, None, "weather")]), chunk("tool_calls"), "[DONE]")))
    assert reply.calls == (ToolCall("call_0", "weather", "{}"),)


async def test_arguments_that_are_an_object_are_taken_as_its_json() -> None:
    reply = await reply_to(stream(data(chunk(tool_calls=[call(0, "a", "weather", {"n": 1})]), chunk("stop"))))
    assert reply.calls[0].parsed() == {"n": 1}


@pytest.mark.parametrize("arguments", ['{"place": ', "[1]", "Bern", '"Bern"'])
async def test_arguments_that_are_no_json_object_are_kept_as_they_are(arguments: str) -> None:
    """The model is told what is wrong with its words, so they must not be lost."""
    pieces = data(chunk(tool_calls=[call(0, "a", "weather", arguments)]), chunk("tool_calls"), "[DONE]")
    reply = await reply_to(stream(pieces))
    assert reply.calls[0].arguments == arguments
    with pytest.raises(BadData, match=r"arguments: .*'weather'"):
        reply.calls[0].parsed()


async def test_no_usage_is_told_as_none() -> None:
    reply = await reply_to(stream(data(chunk(content="hi"), chunk("stop"), "[DONE]")))
    assert (reply.text, reply.usage) == ("hi", None)


async def test_a_server_that_forgets_done_has_said_all() -> None:
    assert (await reply_to(stream(data(chunk(content="hi"), chunk("stop"), used())))).usage.output_tokens == 7


async def test_a_server_that_does_not_stream_answers_as_one() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [call(None, "a", "weather", '{"place":"Bern"}')]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": used()["usage"]}
    reply = await reply_to(whole(body), streams=False)
    assert reply.calls == (ToolCall("a", "weather", '{"place":"Bern"}'),)
    assert reply.usage.input_tokens == 20


@pytest.mark.parametrize(
    "finish,stop",
    [
        ("stop", StopReason.ANSWER),
        ("length", StopReason.MAX_TOKENS),
        ("content_filter", StopReason.REFUSED),
        ("eos_token_found", StopReason.OTHER),
    ],
)
async def test_why_it_stopped(finish: str, stop: StopReason) -> None:
    reply = await reply_to(stream(words("hi", finish=finish)))
    assert (reply.stop, reply.stop_word) == (stop, finish)


async def test_a_refusal_in_words_is_a_refusal() -> None:
    reply = await reply_to(stream(data(chunk(refusal="I will not."), chunk("stop"), "[DONE]")))
    assert (reply.text, reply.stop) == ("I will not.", StopReason.REFUSED)


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", "whatever"])
async def test_an_empty_answer_is_none_but_its_usage_is_known(finish: str) -> None:
    with pytest.raises(BadAnswer, match="empty answer") as caught:
        await reply_to(stream(words(" ", finish=finish)))
    assert isinstance(caught.value.usage, Usage)
    assert caught.value.may_cost


@pytest.mark.parametrize(
    "answer",
    [
        stream(data(chunk(content="hi"), "{not json")),
        stream(data(chunk(content="hi"), {"choices": "many"})),
        stream(data(chunk(content="hi"), [1])),
        whole(b"{"),
        whole({"choices": []}),
        Answer(chunks=[b"<html>Welcome to the proxy</html>"], kind="text/html"),
    ],
    ids=["no JSON", "other types", "no object", "half a body", "no choice", "HTML"],
)
async def test_what_makes_no_sense_is_a_bad_answer(answer: Answer) -> None:
    with pytest.raises(BadAnswer) as caught:
        await reply_to(answer)
    assert (caught.value.agent_code, caught.value.retryable) == ("E007", True)


async def test_a_stream_that_ends_without_a_reason_broke_off() -> None:
    with pytest.raises(AnswerBroken, match="5 characters of text and 0 tool calls had come"):
        await reply_to(stream(data(chunk(content="Hello"))))


async def test_an_error_in_the_midst_of_a_stream() -> None:
    answer = stream(data(chunk(content="hi"), {"error": {"message": "engine died", "type": "server_error"}}))
    with pytest.raises(ModelError, match="engine died") as caught:
        await reply_to(answer)
    assert caught.value.may_cost


@pytest.mark.parametrize(
    "status,error,kind,number,retryable",
    [
        (401, {"message": "Incorrect API key"}, ModelAccess, "E007", False),
        (403, {"message": "country"}, ModelAccess, "E007", False),
        (429, {"type": "insufficient_quota", "message": "pay"}, ModelAccess, "E007", False),
        (429, {"type": "tokens", "message": "Rate limit reached"}, ModelLimited, "E008", True),
        (400, {"code": "context_length_exceeded", "message": "long"}, ContextTooLong, "E007", False),
        (400, {"code": "content_filter", "message": "no"}, ContentRefused, "E007", False),
        (400, {"message": "bad tool schema"}, CallRefused, "E007", False),
        (404, {"code": "model_not_found", "message": "gpt-9"}, ModelUnknown, "E001", False),
        (404, {"message": "no such path"}, CallRefused, "E007", False),
        (302, {}, CallRefused, "E007", False),
        (408, {}, ModelTimeout, "E006", True),
        (500, {"message": "oops"}, ModelError, "E007", True),
        (503, {"message": "loading"}, ModelOverloaded, "E007", True),
        (504, {}, ModelTimeout, "E006", True),
    ],
)
async def test_each_refusal_is_an_error_of_its_kind(
    status: int, error: dict[str, str], kind: type[ModelError], number: str, *, retryable: bool
) -> None:
    with pytest.raises(ModelError) as caught:
        await reply_to(whole({"error": error}, status))
    assert type(caught.value) is kind
    assert (caught.value.agent_code, caught.value.retryable, caught.value.status) == (number, retryable, status)
    assert error.get("message", "") in str(caught.value)


@pytest.mark.parametrize("body", [{"message": "in words"}, {"detail": "in words"}, {"error": "in words"}])
async def test_an_error_in_any_form_is_told(body: dict[str, str]) -> None:
    with pytest.raises(CallRefused, match="in words"):
        await reply_to(whole(body, 422))


async def test_an_error_page_of_html_is_an_error_by_its_status() -> None:
    with pytest.raises(ModelError, match="HTTP 502") as caught:
        await reply_to(Answer(chunks=[b"<html>Bad gateway</html>"], status=502, kind="text/html"))
    assert type(caught.value) is ModelError


async def test_a_limit_says_when_to_come_back() -> None:
    with pytest.raises(ModelLimited) as caught:
        await reply_to(whole({"error": {"message": "slow"}}, 429, retry_after="7"))
    assert caught.value.retry_after == 7


@pytest.mark.parametrize(
    "field,fields",
    [
        ("messages", {"messages": ()}),
        ("messages", {"messages": (system("alone"),)}),
        ("max_tokens", {"max_tokens": 0}),
        ("temperature", {"temperature": 3.0}),
        ("tools[0]", {"tools": (WEATHER.__class__("no name", "", {}),)}),
        ("tools[1]", {"tools": (WEATHER, WEATHER)}),
        ("tool_choice", {"tool_choice": "absent"}),
        ("messages", {"messages": (user("half a character: \ud83c"),)}),
        ("messages[0]", {"messages": (results(ToolResult("x", "y")),)}),
        ("messages[2]", {"messages": (user("a"), assistant("", ToolCall("x", "weather", "{}")), user("b"))}),
        ("messages", {"messages": (user("a"), assistant("", ToolCall("x", "weather", "{}")))}),
    ],
)
async def test_what_cannot_be_asked_names_its_field_and_is_not_sent(field: str, fields: dict[str, Any]) -> None:
    async with serving(stream(words("hi"))) as server:
        provider = OpenAIProvider(endpoint(server.url))
        with pytest.raises(BadOption) as caught:
            await complete(provider, ask(**fields))
        await provider.close()
        assert server.asked == []
    assert str(caught.value).startswith(f"{field}:")


async def test_a_probe_asks_for_the_models() -> None:
    async with serving(whole({"data": []}), whole({}, 503)) as server:
        provider = OpenAIProvider(endpoint(server.url))
        await provider.probe()
        assert server.asked[0].path == "/v1/models"
        with pytest.raises(ModelOverloaded):
            await provider.probe()
        await provider.close()
        await provider.close()


def test_tools_that_are_not_to_be_called_are_told_all_the_same() -> None:
    """What was called before is in the conversation: providers refuse calls of tools that they were not told of."""
    body = OpenAIProvider(endpoint("http://localhost")).body(ask(tools=(WEATHER,), tool_choice="none"))
    assert (len(body["tools"]), body["tool_choice"]) == (1, "none")
