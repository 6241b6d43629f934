"""A provider that has enough holds back all workers of its queue, on a real store and over a real wire."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from bullpen import Context, ModelError, ModelLimited, ModelOverloaded, Queue, Worker, WorkerOptions
from bullpen.agents.llm.allowance import Allowance, Quota
from bullpen.agents.llm.environment import providers_from
from bullpen.agents.llm.openai import OpenAIProvider
from bullpen.agents.llm.pressure import hold_back, hold_s, limited
from bullpen.agents.llm.provider import complete
from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import BadOption
from tests.agents.llm.asking import KEY, ask, endpoint
from tests.agents.llm.openai_server import stream, whole, words
from tests.agents.llm.wire_server import Answer, serving
from tests.support.places import Place

QUEUE = "openai"
PATIENCE_S = 60


class Site:
    """A provider on the wire, its queue, and what two workers did."""

    def __init__(self, provider: OpenAIProvider, queue: Queue) -> None:
        self.provider = provider
        self.queue = queue
        self.started: list[tuple[str, int, int]] = []
        """Name, attempt and time of each start."""
        self.closed_until_ms = 0

    def note(self, ctx: Context) -> None:
        self.started.append((ctx.name, ctx.attempt, SYSTEM_CLOCK.now_ms()))

    async def note_closing(self) -> None:
        self.closed_until_ms = (await self.queue.limits()).closed_until_ms or 0


@contextlib.asynccontextmanager
async def _site(place: Place, *answers: Answer) -> AsyncIterator[Site]:
    store = place.store()
    await store.open()
    async with serving(*answers) as server:
        provider = OpenAIProvider(endpoint(server.url))
        yield Site(provider, Queue(store, QUEUE))
        await provider.close()
    await store.close()


@contextlib.asynccontextmanager
async def _two_workers(place: Place, handler: Callable[[Context], Awaitable[Any]]) -> AsyncIterator[None]:
    stores = [place.store() for _ in range(2)]
    workers = [Worker(store, {QUEUE: handler}, WorkerOptions(concurrency=2)) for store in stores]
    for store in stores:
        await store.open()
    try:
        async with asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker.run())
            try:
                yield
            finally:
                for worker in workers:
                    worker.stop()
    finally:
        for store in stores:
            await store.close()


async def test_remaining_calls_of_an_answer_hold_back_all_workers(place: Place) -> None:
    """The first answer says that no call is left; what both workers start next, they start when there is one again."""
    told = stream(words("hi"), x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="700ms")
    async with _site(place, told, stream(words("hi"))) as site:

        async def run(ctx: Context) -> None:
            site.note(ctx)
            reply = await complete(site.provider, ask())
            if await hold_back(site.queue, reply.allowance) > 0:
                await site.note_closing()
                await site.queue.add_bulk([site.queue.prepare("later") for _ in range(6)])

        async with _two_workers(place, run):
            job = await site.queue.add("first")
            await job.result(timeout=PATIENCE_S)
            await _all_done(site.queue, 7)
    later = [at_ms for name, _, at_ms in site.started if name == "later"]
    assert len(later) == 6
    assert site.closed_until_ms > 0
    assert min(later) >= site.closed_until_ms


async def test_a_refusal_puts_the_job_back_and_holds_back_all_workers(place: Place) -> None:
    """429 with retry-after: no attempt is used, and nobody starts anything before its time."""
    refused = whole({"error": {"message": "slow"}}, 429, retry_after_ms="700")
    async with _site(place, refused, stream(words("hi"))) as site:

        async def run(ctx: Context) -> str:
            site.note(ctx)
            try:
                return (await complete(site.provider, ask())).text
            except ModelLimited as error:
                await hold_back(site.queue, error)
                await site.note_closing()
                await site.queue.add_bulk([site.queue.prepare("later") for _ in range(6)])
                raise limited(error) from None

        async with _two_workers(place, run):
            job = await site.queue.add("first")
            assert await job.result(timeout=PATIENCE_S) == "hi"
            await _all_done(site.queue, 7)
    (_, *after) = site.started
    assert [attempt for _, attempt, _ in site.started] == [1] * 8
    assert min(at_ms for _, _, at_ms in after) >= site.closed_until_ms > 0


async def _all_done(queue: Queue, jobs: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await queue.counts()).completed < jobs:
            await asyncio.sleep(0.02)  # looked at until it is so; the timeout ends it


async def test_enough_left_closes_nothing(place: Place) -> None:
    async with _site(place, stream(words("hi"))) as site:
        await site.queue.add("first")
        enough = Allowance(tokens=Quota(limit=9, remaining=5, resets_ms=SYSTEM_CLOCK.now_ms() + 60_000))
        for told in (None, enough, ModelError("500")):
            assert await hold_back(site.queue, told, needs_tokens=5) == 0
        assert (await site.queue.limits()).closed_until_ms is None
        assert await hold_back(site.queue, enough, needs_tokens=6) > 0
        assert (await site.queue.limits()).closed_until_ms is not None


def test_how_long() -> None:
    assert hold_s(ModelLimited("slow", retry_after=7), 0) == 7
    assert hold_s(ModelLimited("slow"), 0) == 5, "where nobody says"
    assert hold_s(ModelOverloaded("busy"), 0) == 5
    signal = limited(ModelLimited("slow", retry_after=7))
    assert (signal.delay, signal.whole_queue) == (7, True)


# ── providers by environment ─────────────────────────────────────────────────────────────


async def test_providers_come_from_the_environment() -> None:
    assert providers_from({}) == []
    local = {"OPENAI_BASE_URL": "http://localhost:11434/v1", "ANTHROPIC_API_KEY": f" {KEY}\n"}
    assert [provider.name for provider in providers_from(local)] == ["openai", "anthropic"]
    async with serving(stream(words("hi"))) as server:
        (provider,) = providers_from({"OPENAI_BASE_URL": server.url})
        assert (await complete(provider, ask())).text == "hi"
        await provider.close()
        assert "authorization" not in server.asked[0].headers


def test_what_is_wrong_in_the_environment_is_named() -> None:
    with pytest.raises(BadOption, match="ANTHROPIC_BASE_URL") as caught:
        providers_from({"ANTHROPIC_BASE_URL": "http://far.example/v1", "ANTHROPIC_API_KEY": KEY})
    assert KEY not in str(caught.value)
