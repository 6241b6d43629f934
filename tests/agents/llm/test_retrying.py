"""Asking again: where it helps, costs nothing more, and nobody has read a half answer."""

import pytest

from bullpen import AnswerBroken, CallRefused, ModelError, ModelLimited, ModelOverloaded
from bullpen.agents.llm.deltas import Restarted, TextDelta
from bullpen.agents.llm.openai import OpenAIProvider
from bullpen.agents.llm.provider import complete
from bullpen.agents.llm.retrying import Retrying, RetryRules
from bullpen.agents.llm.scripted import ScriptedProvider, script_in
from tests.agents.llm.asking import ask, deltas_of, endpoint
from tests.agents.llm.openai_server import chunk, data, stream, whole, words
from tests.agents.llm.wire_server import Ending, serving


class Sleeps:
    """Notes the pauses and makes none."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def _retrying(error: str, rules: RetryRules | None = None, **turn: object) -> tuple[Retrying, Sleeps]:
    sleeps = Sleeps()
    script = script_in(f"turns: [{{text: Hello, error: {{{error}}}}}]")

    async def at_once(_: float) -> None:
        return

    return Retrying(ScriptedProvider(script, sleep=at_once), rules, sleep=sleeps, vary=lambda: 0.5), sleeps


async def test_pauses_grow_until_it_answers() -> None:
    provider, sleeps = _retrying("code: model-overloaded, times: 3", RetryRules(attempts=9, longest_s=3))
    assert (await complete(provider, ask())).text == "Hello"
    assert sleeps.slept == [1, 2, 3]


async def test_pauses_vary_so_that_many_do_not_come_back_as_one() -> None:
    rules, error = RetryRules(), ModelOverloaded("busy")
    assert rules.pause_s(error, 1, lambda: 0.0) == 0.8
    assert rules.pause_s(error, 1, lambda: 1.0) == 1.2


async def test_who_says_when_is_taken_at_their_word() -> None:
    provider, sleeps = _retrying("code: model-limited, retry_after: 17.5, times: 1")
    await complete(provider, ask())
    assert sleeps.slept == [17.5]


async def test_who_says_much_later_is_not_waited_for() -> None:
    """The queue is closed for that long instead, and the slot does other work."""
    provider, sleeps = _retrying("code: model-limited, retry_after: 61, times: 1")
    with pytest.raises(ModelLimited):
        await complete(provider, ask())
    assert sleeps.slept == []


async def test_after_the_last_attempt_the_error_is_raised() -> None:
    provider, sleeps = _retrying("code: model-error")
    with pytest.raises(ModelError):
        await complete(provider, ask())
    assert len(sleeps.slept) == 2


@pytest.mark.parametrize("code", ["call-refused", "model-access", "context-too-long", "content-refused"])
async def test_what_cannot_help_is_not_done(code: str) -> None:
    provider, sleeps = _retrying(f"code: {code}, times: 1")
    with pytest.raises(ModelError):
        await complete(provider, ask())
    assert sleeps.slept == []


@pytest.mark.parametrize("code", ["model-timeout", "bad-answer", "answer-broken"])
async def test_what_may_cost_is_asked_again_only_if_that_is_allowed(code: str) -> None:
    """One reservation covers one call."""
    provider, _ = _retrying(f"code: {code}, times: 1")
    with pytest.raises(ModelError) as caught:
        await complete(provider, ask())
    assert caught.value.may_cost
    provider, _ = _retrying(f"code: {code}, times: 1", RetryRules(again_if_costly=True))
    assert (await complete(provider, ask())).text == "Hello"


async def test_a_half_read_answer_is_begun_anew_only_if_that_is_allowed() -> None:
    provider, _ = _retrying("after: 3, times: 1", RetryRules(again_if_costly=True))
    with pytest.raises(AnswerBroken):
        await complete(provider, ask())
    provider, _ = _retrying("after: 3, times: 1", RetryRules(again_if_costly=True, again_after_words=True))
    deltas = await deltas_of(provider, ask())
    assert [delta for delta in deltas if isinstance(delta, TextDelta | Restarted)] == [
        TextDelta("Hel"),
        Restarted("scripted: as the script says"),
        TextDelta("Hello"),
    ]
    provider, _ = _retrying("after: 3, times: 1", RetryRules(again_if_costly=True, again_after_words=True))
    assert (await complete(provider, ask())).text == "Hello", "a reply has nothing of what is void"


async def test_over_the_wire_with_the_same_idempotency_key() -> None:
    busy = whole({"error": {"message": "busy"}}, 529)
    limited = whole({"error": {"message": "slow"}}, 429, retry_after="3")
    async with serving(limited, busy, stream(words("Hello"))) as server:
        sleeps = Sleeps()
        provider = Retrying(OpenAIProvider(endpoint(server.url)), sleep=sleeps, vary=lambda: 0.5)
        reply = await complete(provider, ask(idempotency_key="step-4"))
        await provider.close()
        assert {asked.headers["idempotency-key"] for asked in server.asked} == {"step-4"}
    assert (reply.text, sleeps.slept) == ("Hello", [3, 2])


async def test_a_cut_stream_is_not_begun_anew() -> None:
    async with serving(stream(data(chunk(content="Hel")), Ending.CUT)) as server:
        provider = Retrying(OpenAIProvider(endpoint(server.url)), sleep=Sleeps())
        with pytest.raises(AnswerBroken, match="3 characters"):
            await complete(provider, ask())
        await provider.close()
        assert len(server.asked) == 1


async def test_a_mistake_of_ours_is_no_error_of_a_model() -> None:
    provider, _ = _retrying("code: call-refused")
    with pytest.raises(CallRefused):
        await complete(provider, ask())
    await provider.probe()
    await provider.close()
