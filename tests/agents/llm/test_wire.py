"""What a network does to an answer: cuts, silence, chunks anywhere; and what we do about the key."""

import asyncio
import contextlib
import itertools
import logging
import traceback
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bullpen import AnswerBroken, BadAnswer, BadOption, ModelAccess, ModelError, ModelTimeout
from bullpen.agents.llm.anthropic import AnthropicProvider, MessageReader
from bullpen.agents.llm.deltas import Delta, Gathering, TextDelta
from bullpen.agents.llm.endpoint import Endpoint
from bullpen.agents.llm.openai import ChatReader, OpenAIProvider
from bullpen.agents.llm.provider import complete
from bullpen.agents.llm.sse import MAX_EVENT_BYTES, EventReader, ServerEvent
from bullpen.agents.llm.wire import Reader
from tests.agents.llm import anthropic_server, openai_server
from tests.agents.llm.asking import KEY, ask, endpoint
from tests.agents.llm.openai_server import chunk, data, stream, whole, words
from tests.agents.llm.wire_server import HANG, HANG_UP, Answer, Ending, serving

_TEXT = "Zürich, 東京, 🎈, and\nthe rest\r\n"
_EVENTS = anthropic_server.events(
    anthropic_server.start(),
    *anthropic_server.text(0, *_TEXT),
    *anthropic_server.tool(1, "t", "weather", '{"pl', 'ace":"東', '京"}'),
    *anthropic_server.stop("tool_use"),
)
_CHUNKS = openai_server.data(
    chunk(role="assistant"),
    *(chunk(content=letter) for letter in _TEXT),
    chunk(tool_calls=[openai_server.call(0, "t", "weather", '{"place":"東京"}')]),
    chunk("tool_calls"),
    openai_server.used(),
    "[DONE]",
)


def _read(reader: Reader, pieces: Sequence[bytes]) -> list[Delta]:
    events = EventReader()
    found = [delta for piece in pieces for event in events.feed(piece) for delta in reader.event(event)]
    return [*found, *reader.close()]


def _cut(whole_stream: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted({place % len(whole_stream) for place in places}), len(whole_stream)]
    return [whole_stream[start:end] for start, end in itertools.pairwise(edges)]


@given(st.lists(st.integers(0, 100_000), max_size=40), st.sampled_from([b"\n", b"\r\n", b"\r"]))
@example(list(range(100_000)), b"\r\n")
@example(list(range(100_000)), b"\r")
def test_where_a_stream_is_cut_makes_no_difference(places: list[int], line_end: bytes) -> None:
    """Also within a character of several bytes, and between the two halves of a line's end."""
    for reader, pieces in ((ChatReader, _CHUNKS), (MessageReader, _EVENTS)):
        stream_of_it = b"".join(pieces).replace(b"\n", line_end)
        gathering = Gathering()
        for delta in _read(reader(), _cut(stream_of_it, places)):
            gathering.take(delta)
        reply = gathering.reply()
        assert reply.text == _TEXT
        assert [call.parsed() for call in reply.calls] == [{"place": "東京"}]


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_any_bytes_are_events_or_nothing(pieces: list[bytes]) -> None:
    """What is no stream of events does no harm, and says the same however it is cut."""
    reader = EventReader()
    found = [event for piece in pieces for event in reader.feed(piece)]
    assert found == list(EventReader().feed(b"".join(pieces)))


def test_comments_names_and_several_lines() -> None:
    text = "\ufeff: hello\nevent: tick\ndata: a\ndata:b\nid: 7\nretry: 9\n\n\ndata: c\n\nevent: lost\n\ndata: half"
    assert list(EventReader().feed(text.encode())) == [ServerEvent("a\nb", "tick"), ServerEvent("c")]


def test_an_event_without_end_is_given_up() -> None:
    reader = EventReader()
    list(reader.feed(b"x" * MAX_EVENT_BYTES))
    with pytest.raises(ValueError, match="over"):
        list(reader.feed(b"x"))


@pytest.mark.parametrize("kind", [OpenAIProvider, AnthropicProvider])
async def test_an_answer_that_comes_byte_by_byte(kind: type[OpenAIProvider | AnthropicProvider]) -> None:
    pieces = _CHUNKS if kind is OpenAIProvider else _EVENTS
    single = [bytes([byte]) for byte in b"".join(pieces)]
    async with serving(Answer(chunks=single)) as server:
        provider = kind(endpoint(server.url))
        reply = await complete(provider, ask())
        await provider.close()
    assert (reply.text, reply.calls[0].parsed()) == (_TEXT, {"place": "東京"})


async def _fails(answer: Answer, **times: float) -> ModelError:
    async with serving(answer) as server:
        provider = OpenAIProvider(endpoint(server.url, **times))
        with pytest.raises(ModelError) as caught:
            await complete(provider, ask())
        await provider.close()
    return caught.value


async def test_a_cut_says_how_far_the_answer_came() -> None:
    pieces = [chunk(content="Hello"), chunk(tool_calls=[openai_server.call(0, "a", "weather", "{")])]
    error = await _fails(stream(data(*pieces), Ending.CUT))
    assert isinstance(error, AnswerBroken)
    assert "5 characters of text and 1 tool call had come" in str(error)
    assert error.may_cost


async def test_silence_before_an_answer_is_a_timeout() -> None:
    error = await _fails(HANG, silence_s=0.05)
    assert isinstance(error, ModelTimeout)
    assert (error.agent_code, error.may_cost) == ("E006", True)
    assert "nothing came for 0.05 s" in str(error)


async def test_silence_within_an_answer_is_a_timeout_that_says_how_far_it_came() -> None:
    error = await _fails(stream(data(chunk(content="Hel")), Ending.SILENT), silence_s=2)
    assert isinstance(error, ModelTimeout)
    assert "3 characters" in str(error)


async def test_an_answer_that_never_ends_is_over_at_its_time() -> None:
    """Silence is never long enough here; the whole is."""
    error = await _fails(stream(data(chunk(content="Hel")), Ending.SILENT), whole_s=2)
    assert isinstance(error, ModelTimeout)
    assert "not whole within 2 s" in str(error)


async def test_a_server_that_hangs_up_may_have_answered_one_that_is_not_there_has_not() -> None:
    """Whether a call may cost decides whether it may be made again under the same reservation."""
    hung_up = await _fails(HANG_UP)
    assert (type(hung_up), hung_up.may_cost) == (ModelError, True)
    async with serving(HANG) as server:
        pass  # gone, and its port with it
    provider = OpenAIProvider(endpoint(server.url))
    with pytest.raises(ModelError) as caught:
        await complete(provider, ask())
    await provider.close()
    assert (type(caught.value), caught.value.may_cost) == (ModelError, False)


async def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that writes for ever does not fill the memory."""
    monkeypatch.setattr("bullpen.agents.llm.wire._WHOLE_BYTES", 10_000)
    for answer in (stream(data(*[chunk(content="x" * 100)] * 200)), whole(b'"' + b"x" * 20_000 + b'"')):
        error = await _fails(answer)
        assert isinstance(error, BadAnswer)
        assert "over 10,000 bytes" in str(error)


async def test_who_is_cancelled_in_the_midst_of_a_stream_hangs_up() -> None:
    came = asyncio.Event()

    def look(delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            came.set()

    async with serving(stream(data(chunk(content="Hel")), Ending.SILENT)) as server:
        provider = OpenAIProvider(endpoint(server.url))
        asking = asyncio.create_task(complete(provider, ask(), look))
        await came.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(server.hung_up.wait(), 60)
        await provider.close()


async def test_who_closes_a_stream_hangs_up() -> None:
    async with serving(stream(data(chunk(content="Hel")), Ending.SILENT)) as server:
        provider = OpenAIProvider(endpoint(server.url))
        async with contextlib.aclosing(provider.stream(ask())) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    break
        await asyncio.wait_for(server.hung_up.wait(), 60)
        await provider.close()


async def test_a_reader_s_own_slowness_is_not_the_provider_s() -> None:
    """A reader who takes longer than the provider may does not see a timeout for it."""
    async with serving(stream(words("a", "b"))) as server:
        provider = OpenAIProvider(endpoint(server.url, silence_s=2))
        seen: list[Delta] = []
        async with contextlib.aclosing(provider.stream(ask())) as deltas:
            async for delta in deltas:
                if not seen:
                    await asyncio.sleep(2.2)
                seen.append(delta)
        await provider.close()
    assert len(seen) == 5


async def test_a_connection_is_used_again() -> None:
    async with serving(stream(words("hi"))) as server:
        provider = OpenAIProvider(endpoint(server.url))
        for _ in range(3):
            await complete(provider, ask())
        await provider.close()
        assert (len(server.asked), server.connections) == (3, 1)


async def test_no_proxy_of_the_environment_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with serving(stream(words("hi"))) as server:
        provider = OpenAIProvider(endpoint(server.url))
        assert (await complete(provider, ask())).text == "hi"
        await provider.close()


@pytest.mark.parametrize("kind", [OpenAIProvider, AnthropicProvider])
@pytest.mark.parametrize(
    "answer",
    [
        whole({"error": {"message": f"Incorrect API key provided: {KEY}. You gave Bearer {KEY}"}}, 401),
        whole({"error": {"message": "Incorrect API key provided: sk-very***6789."}}, 401),
        whole({"error": KEY}, 500),
        Answer(chunks=[f"data: {{'{KEY}'}}\n\n".encode()]),
        stream(data(chunk(content="x")), Ending.CUT),
        HANG_UP,
        HANG,
    ],
    ids=["quoted", "half hidden", "as a text", "in broken JSON", "cut", "hung up", "silent"],
)
async def test_the_key_is_in_no_log_error_or_repr(
    kind: type[OpenAIProvider | AnthropicProvider], answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    place = Endpoint(
        base_url="http://127.0.0.1:1", key=KEY, headers={"x-gate": "gate-secret-42"}, proxy="http://u:proxy-secret@h"
    )
    async with serving(answer) as server:
        provider = kind(endpoint(server.url, silence_s=0.1, headers={"x-gate": "gate-secret-42"}))
        with pytest.raises(ModelError) as caught:
            await complete(provider, ask())
        shown = [repr(provider), repr(place), repr(provider._wire), repr(kind(place)), caplog.text]
        await provider.close()
    error = caught.value
    shown += [repr(error), str(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    for text in shown:
        assert KEY not in text
        assert "very***" not in text
        assert "secret" not in text
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None, "a driver's error holds the request and its headers"


async def test_a_key_that_does_not_look_like_one_is_hidden_too() -> None:
    plain = "0a1b2c3d4e5f"
    async with serving(whole({"error": {"message": f"{plain} is wrong, and so is gate-word"}}, 401)) as server:
        provider = OpenAIProvider(Endpoint(base_url=server.url, key=plain, headers={"x-gate": "gate-word"}))
        with pytest.raises(ModelAccess) as caught:
            await complete(provider, ask())
        await provider.close()
    assert str(caught.value) == "openai: HTTP 401 for gpt: [hidden] is wrong, and so is [hidden]"


async def test_a_key_does_not_follow_a_redirect() -> None:
    async with serving(stream(words("stolen"))) as thief:
        async with serving(whole({}, 307, location=f"{thief.url}/chat/completions")) as server:
            provider = OpenAIProvider(endpoint(server.url))
            with pytest.raises(ModelError, match="HTTP 307"):
                await complete(provider, ask())
            await provider.close()
        assert thief.asked == []


@pytest.mark.parametrize(
    "field,fields",
    [
        ("base_url", {"base_url": "ftp://host"}),
        ("base_url", {"base_url": "https://"}),
        ("base_url", {"base_url": f"https://user:{KEY}@host"}),
        ("base_url", {"base_url": f"https://host?key={KEY}"}),
        ("base_url", {"base_url": "http://far.example", "key": KEY}),
        ("key", {"base_url": "https://host", "key": f"{KEY}\n"}),
        ("silence_s", {"base_url": "https://host", "silence_s": 0}),
        ("whole_s", {"base_url": "https://host", "whole_s": float("inf")}),
    ],
)
def test_a_bad_endpoint_names_its_field_and_not_the_key(field: str, fields: dict[str, object]) -> None:
    with pytest.raises(BadOption) as caught:
        Endpoint(**fields)  # type: ignore[arg-type]  # wrong on purpose
    assert str(caught.value).startswith(f"{field}:")
    assert KEY not in str(caught.value)


def test_plain_http_is_for_this_machine_or_for_who_says_so() -> None:
    for url in ("http://127.0.0.1:1", "http://localhost:11434/v1", "http://[::1]:8000"):
        Endpoint(base_url=url, key=KEY)
    Endpoint(base_url="http://gpu.lan:8000/v1")
    Endpoint(base_url="http://gpu.lan:8000/v1", key=KEY, allow_http=True)


async def test_a_refused_key_is_not_worth_another_try() -> None:
    error = await _fails(whole({"error": {"message": "no"}}, 401))
    assert isinstance(error, ModelAccess)
    assert not error.retryable
    assert "openai" not in error.safe_message
