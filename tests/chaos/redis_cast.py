"""The processes of a play on Redis, and the account of what became of their jobs."""

import asyncio
import collections
import contextlib
import dataclasses
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec

from bullpen import FROM_START, Counts, Event, EventKind, Queue, StoreError
from bullpen.stores.redis import RedisStore
from bullpen.worker.signals import tell
from tests.chaos.redis_actors import QUEUE, Part
from tests.support.programs import ROOT
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import RedisServer
from tests.worker.waiting import until

PATIENCE_S = 90
_PAGE = 5_000
_PROGRESS_BYTES = 1_200
"""Notes of about a hundred jobs: so many acknowledged and so many done, and it goes on."""


class Cast:
    """Producers and workers of one queue."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._folder = Path(part.folder)
        self._living: list[tuple[str, asyncio.subprocess.Process]] = []

    async def enter(self, *roles: str) -> None:
        for role in roles:
            process = await asyncio.create_subprocess_exec(*self.command(role), cwd=ROOT)
            self._living.append((role, process))

    def command(self, role: str) -> list[str]:
        return dataclasses.replace(self.part, role=role).command()

    def of(self, role: str) -> list[asyncio.subprocess.Process]:
        return [process for known, process in self._living if known == role]

    async def leave(self, role: str) -> None:
        """Ask all of them to end; each does, in good order."""
        for process in self.of(role):
            tell(process, signal.SIGTERM)
        await self.ended(role)

    async def ended(self, role: str) -> None:
        """Until all of them have ended, which must be a good end."""
        async with asyncio.timeout(PATIENCE_S):
            codes = {process.pid: await process.wait() for process in self.of(role)}
        # Who has just begun does not listen to signals yet; it holds nothing either.
        begun = set(map(int, self.notes("begun")))
        bad = {pid for pid, code in codes.items() if code and (code != -signal.SIGTERM or pid in begun)}
        assert bad == set(), f"a {role} ended badly: see {self._folder}"
        self._living = [(known, process) for known, process in self._living if known != role]

    async def kill_one(self, role: str) -> None:
        """Kill any of them; another takes its place at once."""
        await self._replace(role, random.choice(self.of(role)))

    async def kill_one_at_work(self, role: str) -> int:
        """The same, of those that have run a job: on a busy machine nobody else would ever come to. How many it was."""
        begun = set(map(int, self.notes("begun")))
        at_work = [process for process in self.of(role) if process.pid in begun]
        if at_work:
            await self._replace(role, random.choice(at_work))
        return len(at_work[:1])

    async def _replace(self, role: str, process: asyncio.subprocess.Process) -> None:
        assert process.returncode is None, f"a {role} ended by itself: see {self._folder}"
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        self._living.remove((role, process))
        await self.enter(role)

    def kill_all(self, role: str) -> None:
        for process in self.of(role):
            tell(process, signal.SIGKILL)

    async def end(self) -> None:
        for _, process in self._living:
            tell(process, signal.SIGKILL)
            await process.wait()

    def notes(self, name: str) -> list[str]:
        path = self._folder / name
        return path.read_text().split() if path.exists() else []

    def noted_bytes(self, name: str) -> int:
        """How much was noted; a look at it costs nothing, however long the play is."""
        path = self._folder / name
        return path.stat().st_size if path.exists() else 0

    async def goes_on(self) -> None:
        """Until more was acknowledged and more was done than now, by those who are there."""
        for name in ("acknowledged", "done"):
            await self._grows(name, _PROGRESS_BYTES)

    async def is_refused(self, code: str, times: int) -> None:
        """Until producers met that error so often."""
        await self._grows("refused", times * len(f"{code}\n"))

    async def _grows(self, name: str, more_bytes: int) -> None:
        enough = self.noted_bytes(name) + more_bytes

        async def look() -> int:
            gone = [(role, process.returncode) for role, process in self._living if process.returncode is not None]
            assert gone == [], f"ended by themselves: {gone}; see {self._folder}"
            return self.noted_bytes(name)

        await until(look, lambda noted: noted >= enough, limit_s=PATIENCE_S)


def a_part(url: str, folder: Path, soak_s: float | None) -> Part:
    """A long play is a slow one: all of its jobs and events are kept to the end."""
    return Part(role="", url=url, folder=str(folder), pace_s=0.02 if soak_s is None else 0.1)


@contextlib.asynccontextmanager
async def on_stage(part: Part, *, producers: int = 2, workers: int = 2) -> AsyncIterator[Cast]:
    """The cast at work; whatever happens, nobody of it lives on."""
    cast = Cast(part)
    try:
        await cast.enter(*["worker"] * workers, *["producer"] * producers)
        await cast.goes_on()
        yield cast
    finally:
        await cast.end()


async def repeat(trouble: Callable[[], Awaitable[None]], times: int, soak_s: float | None) -> int:
    """Make trouble that often, or for that long; how often it was."""
    made, end = 0, time.monotonic() + (soak_s or 0)
    while made < times if soak_s is None else time.monotonic() < end:
        await trouble()
        made += 1
    return made


# ── the account ──────────────────────────────────────────────────────────────────────────


def keep_all_events(server: RedisServer, prefix: str) -> None:
    """So that at the end there is a line for everything that ever happened."""
    with server.client() as client:
        client.hset(f"{prefix}:{QUEUE}:meta", "opts.maxLenEvents", "100000000")


@dataclasses.dataclass
class Story:
    """What a server's log of events tells of the jobs; each is named by its key."""

    added: set[str] = dataclasses.field(default_factory=set)
    completed: set[str] = dataclasses.field(default_factory=set)
    ends: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """How often each id came to an end."""
    failed: set[str] = dataclasses.field(default_factory=set)
    stalls: int = 0

    def take_in(self, event: Event) -> None:
        job_id = event.job_id or ""
        match event.kind:
            case EventKind.ADDED:
                self.added.add(event.name or "")
            case EventKind.STALLED:
                self.stalls += 1
            case EventKind.COMPLETED:
                self.ends[job_id] += 1
                self.completed.add(msgspec.json.decode(event.value or b"", type=str))
            case EventKind.FAILED:
                self.ends[job_id] += 1
                self.failed.add(job_id)


async def read_story(store: RedisStore) -> Story:
    story, cursor = Story(), FROM_START
    while True:
        page = await store.events(QUEUE, after=cursor, limit=_PAGE, timeout_ms=0)
        assert not page.gap
        if not page.events:
            return story
        cursor = page.cursor
        for event in page.events:
            story.take_in(event)


@dataclasses.dataclass
class Account:
    acknowledged: list[str]
    done: collections.Counter[str]
    refused: collections.Counter[str]
    story: Story

    @property
    def lost(self) -> set[str]:
        """Acknowledged, and not completed when all has ended."""
        return set(self.acknowledged) - self.story.completed

    def __str__(self) -> str:
        again = sum(times - 1 for times in self.done.values())
        return (
            f"{len(self.acknowledged)} adds acknowledged, {len(self.story.completed)} jobs completed, {again} runs made"
            f" again, {self.story.stalls} stalls, {len(self.lost)} lost; producers met {dict(self.refused)}"
        )


async def settle_up(cast: Cast, find_server: Callable[[], RedisServer], prefix: str = "bull") -> Account:
    """Let everything end, and assert what must hold of every job but that none is lost."""
    await cast.leave("producer")
    store = RedisStore(cast.part.url)
    await store.open()
    try:
        await until(lambda: _is_over(Queue(store, QUEUE), find_server), bool, limit_s=PATIENCE_S)
        await cast.leave("worker")
        account = await draw_up(cast, store)
    finally:
        await store.close()
    await check_layout(find_server(), prefix)
    return account


async def _is_over(queue: Queue, find_server: Callable[[], RedisServer]) -> bool:
    """All is done, and every replica knows: a busy machine may have its master replaced at any moment."""
    if await unfinished(queue) != 0 or not await asyncio.to_thread(_is_everywhere, find_server()):
        return False
    return await unfinished(queue) == 0


def _is_everywhere(server: RedisServer) -> bool:
    with server.client() as client:
        replicas = int(client.info("replication")["connected_slaves"])
        return int(client.wait(replicas, 1_000)) >= replicas


async def check_layout(server: RedisServer, prefix: str) -> None:
    harness = RedisHarness(server.url)
    harness.prefix = prefix
    await harness.check()
    await harness.close()


async def unfinished(queue: Queue) -> int:
    try:
        return (await queue.counts()).unfinished
    except StoreError:
        return -1  # the trouble may not be over yet


async def draw_up(cast: Cast, store: RedisStore) -> Account:
    account = Account(
        acknowledged=cast.notes("acknowledged"),
        done=collections.Counter(cast.notes("done")),
        refused=collections.Counter(cast.notes("refused")),
        story=await read_story(store),
    )
    _check(account, await store.counts(QUEUE), is_all_kept=cast.part.kept is None)
    return account


def _check(account: Account, counts: Counts, *, is_all_kept: bool) -> None:
    story, acknowledged = account.story, account.acknowledged
    assert len(acknowledged) == len(set(acknowledged)) > 0
    assert {job_id for job_id, times in story.ends.items() if times != 1} == set(), "settled by two leases"
    assert story.failed == set(), "no job fails for good here"
    assert story.completed <= account.done.keys(), "completed and never run"
    assert (counts.active, counts.unfinished, counts.failed) == (0, 0, 0)
    if is_all_kept:
        assert counts.completed == len(story.ends) == len(story.completed)
