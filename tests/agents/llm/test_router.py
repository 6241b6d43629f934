"""Health as a state machine, and the router that walks the order of fallbacks by it."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen import (
    AnswerBroken,
    BadAnswer,
    CallRefused,
    ContentRefused,
    ContextTooLong,
    ModelAccess,
    ModelError,
    ModelLimited,
    ModelOverloaded,
    ModelTimeout,
    ModelUnknown,
    ProvidersDown,
)
from bullpen.agents.llm.allowance import Allowance, Quota
from bullpen.agents.llm.deltas import Delta, End, Started, TextDelta
from bullpen.agents.llm.health import HEALTHY, Health, HealthInMemory, HealthRules, Standing
from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.provider import complete
from bullpen.agents.llm.retrying import RetryRules
from bullpen.agents.llm.router import Router
from bullpen.agents.llm.words import Request, StopReason, Usage
from bullpen.testing.clock import ManualClock
from tests.agents.llm.asking import ask

RULES = HealthRules()
MINUTE_MS = 60_000


class Fickle:
    """Answers with its name, or raises what it is told to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: ModelError | None = None
        self.words_first = False
        self.allowance: Allowance | None = None
        self.asked: list[str] = []
        self.probes = 0

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.asked.append(request.model)
        if self.words_first:
            yield TextDelta("half")
        if self.error is not None:
            raise self.error
        yield Started(request.model, allowance=self.allowance)
        yield TextDelta(self.name)
        yield End(StopReason.ANSWER)

    async def probe(self) -> None:
        self.probes += 1
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        """Nothing is open."""


def _table() -> ModelTable:
    usual = {"context_window": 1_000, "max_output": 100, "input": 1, "output": 1}
    return table_of(
        {
            "version": "1",
            "models": {
                "best": {**usual, "provider": "a", "served_as": "a-1", "fallbacks": ["spare", "last"]},
                "spare": {**usual, "provider": "b", "context_window": 900},
                "last": {**usual, "provider": "c", "context_window": 5_000},
                "lonely": {**usual, "provider": "absent"},
            },
        }
    )


class Scene:
    def __init__(self, **retries: Any) -> None:
        self.clock = ManualClock()
        self.a, self.b, self.c = (Fickle(name) for name in "abc")
        self.health = HealthInMemory()
        self.slept: list[float] = []
        self.router = Router(
            [self.a, self.b, self.c],
            _table(),
            retries=RetryRules(**{"attempts": 1, **retries}),
            health=self.health,
            clock=self.clock,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def ask(self, model: str = "best") -> str:
        reply = await complete(self.router, ask(model=model))
        assert reply.text == reply.provider
        return reply.model

    async def standing(self, provider: str) -> Standing:
        return (await self.health.read(provider)).standing


async def test_a_model_is_asked_of_its_provider_by_its_name_there() -> None:
    scene = Scene()
    assert await scene.ask() == "best", "the name by which its price is found"
    assert scene.a.asked == ["a-1"]


@pytest.mark.parametrize(
    "error,answers",
    [
        (ModelOverloaded("busy"), "spare"),
        (ModelError("500"), "spare"),
        (ModelLimited("slow", retry_after=90), "spare"),
        (ModelAccess("key"), "spare"),
        (ModelUnknown("gone"), "spare"),
        (ModelTimeout("no connection", may_cost=False), "spare"),
        (ContextTooLong("long"), "last"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
async def test_the_order_is_walked_by_the_kind_of_error(error: ModelError, answers: str) -> None:
    """A conversation that is too long goes only where more fits."""
    scene = Scene()
    scene.a.error = error
    assert await scene.ask() == answers


@pytest.mark.parametrize(
    "error", [CallRefused("no"), ContentRefused("no"), ModelTimeout("silent"), BadAnswer("html"), AnswerBroken("cut")]
)
async def test_what_another_would_not_do_better_or_what_may_cost_is_raised(error: ModelError) -> None:
    scene = Scene()
    scene.a.error = error
    with pytest.raises(type(error)):
        await scene.ask()
    assert scene.b.asked == []


async def test_a_half_read_answer_is_not_continued_by_another_model() -> None:
    scene = Scene()
    scene.a.error, scene.a.words_first = ModelError("500"), True
    with pytest.raises(ModelError):
        await scene.ask()
    allowed = Scene(again_after_words=True)
    allowed.a.error, allowed.a.words_first = ModelError("500"), True
    assert await allowed.ask() == "spare"


async def test_the_same_is_asked_again_before_another_is() -> None:
    scene = Scene(attempts=3)
    scene.a.error = ModelOverloaded("busy")
    assert await scene.ask() == "spare"
    assert (len(scene.a.asked), len(scene.slept)) == (3, 2)


async def test_when_all_fail_the_last_error_is_raised() -> None:
    scene = Scene()
    for provider in (scene.a, scene.b, scene.c):
        provider.error = ModelError(provider.name)
    with pytest.raises(ModelError, match="c"):
        await scene.ask()


async def test_a_provider_that_failed_twice_is_asked_after_the_others() -> None:
    scene = Scene()
    scene.a.error = ModelError("500")
    await scene.ask()
    await scene.ask()
    assert await scene.standing("a") == Standing.DEGRADED
    assert await scene.ask() == "spare"
    assert len(scene.a.asked) == 2
    scene.b.error = scene.c.error = ModelError("500")
    scene.a.error = None
    assert await scene.ask() == "best", "as a last resort"
    assert await scene.standing("a") == Standing.HEALTHY


async def test_a_limited_provider_is_asked_after_the_others_until_its_time() -> None:
    scene = Scene()
    scene.a.error = ModelLimited("slow", retry_after=30)
    assert await scene.ask() == "spare"
    scene.a.error = None
    assert await scene.ask() == "spare"
    assert await scene.standing("a") == Standing.HEALTHY, "to be asked less is no illness"
    scene.clock.advance(30_000)
    assert await scene.ask() == "best"


async def test_who_begins_is_told_when_all_have_enough() -> None:
    scene = Scene()
    for provider, seconds in ((scene.a, 30), (scene.b, 20), (scene.c, 40)):
        provider.error = ModelLimited("slow", retry_after=seconds)
    with pytest.raises(ModelLimited):
        await scene.ask()
    with pytest.raises(ModelLimited, match="best: b has enough for now") as caught:
        await scene.router.check("best")
    assert (caught.value.provider, caught.value.retry_after) == ("b", 20)
    scene.clock.advance(20_000)
    await scene.router.check("best")
    with pytest.raises(ModelLimited, match="last: c has enough"):
        await scene.router.check("last")


async def test_what_an_answer_says_of_limits_counts_for_the_next_call() -> None:
    scene = Scene()
    resets_ms = scene.clock.now_ms() + 30_000
    scene.a.allowance = Allowance(tokens=Quota(remaining=99, resets_ms=resets_ms))
    assert await scene.ask() == "best"
    assert await scene.ask() == "spare"
    assert (await scene.health.read("a")).limited_until_ms == resets_ms
    scene.clock.advance(30_000)
    assert await scene.ask() == "best"


async def test_who_waits_for_a_limit_looks_again_when_one_that_is_down_may_be_back() -> None:
    scene = Scene()
    await _bring_down(scene)
    scene.c.error = None
    scene.clock.advance(MINUTE_MS - 1_000)
    await scene.health.change("c", lambda _: HEALTHY.after_limit(scene.clock.now_ms() + MINUTE_MS))
    with pytest.raises(ModelLimited) as caught:
        await scene.router.check("best")
    assert caught.value.retry_after == 1


async def _bring_down(scene: Scene) -> None:
    scene.a.error = ModelError("500")
    for provider in (scene.b, scene.c):
        provider.error = ModelError("500")
    for _ in range(5):
        with pytest.raises(ModelError):
            await scene.ask()


async def test_what_is_down_is_not_asked_until_its_probe_is_due() -> None:
    scene = Scene()
    await _bring_down(scene)
    asked = len(scene.a.asked)
    with pytest.raises(ProvidersDown, match="no provider of it is in health: 500; 500; 500") as caught:
        await scene.ask()
    assert len(scene.a.asked) == asked
    assert caught.value.retry_after == 60
    assert (caught.value.agent_code, caught.value.retryable) == ("E007", True)
    scene.clock.advance(MINUTE_MS)
    scene.a.error = None
    assert await scene.ask() == "best", "where nobody probes, a call finds out"


async def test_a_probe_each_minute_lifts_by_one_step() -> None:
    scene = Scene()
    await _bring_down(scene)
    await scene.router.probe()
    assert scene.a.probes == 0, "not before a minute is over"
    scene.clock.advance(MINUTE_MS)
    await scene.router.probe()
    assert (scene.a.probes, await scene.standing("a")) == (1, Standing.DOWN)
    scene.a.error = None
    await scene.router.probe()
    assert scene.a.probes == 1
    for standing in (Standing.DEGRADED, Standing.HEALTHY, Standing.HEALTHY):
        scene.clock.advance(MINUTE_MS)
        await scene.router.probe()
        assert await scene.standing("a") == standing
    assert scene.a.probes == 3, "one in health is left alone"


async def test_a_model_whose_provider_is_not_set_up() -> None:
    with pytest.raises(ModelAccess, match="'lonely' needs the provider 'absent'"):
        await Scene().ask("lonely")


async def test_an_unknown_model() -> None:
    with pytest.raises(ModelUnknown, match="did you mean best"):
        await Scene().ask("bset")


# ── health by itself ─────────────────────────────────────────────────────────────────────


def test_failures_in_a_row_make_it_degraded_and_then_down() -> None:
    health, seen = HEALTHY, []
    for now_ms in range(1, 7):
        health = health.after_error(ModelError("500"), now_ms, RULES)
        seen.append(health.standing)
    assert seen == [Standing.HEALTHY, *[Standing.DEGRADED] * 3, *[Standing.DOWN] * 2]
    assert (health.since_ms, health.probe_at_ms) == (5, 6 + MINUTE_MS)
    assert health.after_answer(9).standing == Standing.HEALTHY


def test_a_limit_stays_until_its_time_whatever_answers() -> None:
    """A call that began before the limit was met, or a probe, says nothing of it."""
    limited = HEALTHY.after_error(ModelError("500"), 1, RULES).after_error(
        ModelLimited("slow", retry_after=7), 1, RULES
    )
    for later in (limited.after_answer(2), limited.after_probe(None, 2, RULES)):
        assert later.limited_until_ms == 7_001
        assert later.after_answer(7_001).limited_until_ms == 0


@pytest.mark.parametrize(
    "error",
    [
        CallRefused("x", status=400),
        *(ModelAccess("x", status=status) for status in (401, 402, 403)),
        ModelUnknown("x", status=404),
        ContextTooLong("x"),
        ContentRefused("x"),
        BadAnswer("empty", usage=Usage(1)),
    ],
)
def test_what_we_asked_or_the_model_said_is_no_illness_of_its_provider(error: ModelError) -> None:
    assert HEALTHY.after_error(error, 1, RULES) == HEALTHY


@pytest.mark.parametrize("error", [ModelAccess("x", status=401), CallRefused("x", status=404)])
def test_a_probe_that_is_refused_was_answered(error: ModelError) -> None:
    """A server that has no list of models, or does not take our key, is there."""
    down = Health(Standing.DOWN, RULES.down_after, 1, 2)
    assert down.after_probe(error, 3, RULES).standing == Standing.DEGRADED


_ERRORS = st.sampled_from(
    [
        ModelError("x"),
        ModelTimeout("x"),
        ModelLimited("x", retry_after=5),
        ModelAccess("x", status=401),
        CallRefused("x"),
    ]
)


@given(st.lists(st.one_of(_ERRORS, st.none(), st.booleans())))
def test_however_calls_end_it_stands_somewhere_and_can_recover(outcomes: list[ModelError | bool | None]) -> None:
    """An error, an answer (None), or a probe that went well or not."""
    health = HEALTHY
    for n, outcome in enumerate(outcomes):
        match outcome:
            case bool():
                health = health.after_probe(None if outcome else ModelError("x"), n, RULES)
            case None:
                health = health.after_answer(n)
            case _:
                health = health.after_error(outcome, n, RULES)
        assert health.since_ms <= n
        assert (health.failures >= RULES.degraded_after) == (health.standing != Standing.HEALTHY)
    later_ms = len(outcomes) + MINUTE_MS  # than any limit
    for _ in range(2):
        health = health.after_probe(None, later_ms, RULES)
    assert health == Health(since_ms=later_ms)
