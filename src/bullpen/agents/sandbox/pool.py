"""Sandboxes that are ready before they are asked for.

One that was lent is never lent again, to nobody: it is closed, and a fresh one takes its place.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from bullpen.agents.sandbox.base import Driver, Level, Sandbox, require
from bullpen.agents.sandbox.limits import SandboxSpec, check_seconds
from bullpen.agents.sandbox.maker import Maker
from bullpen.agents.sandbox.registry import Entry, Registry
from bullpen.agents.sandbox.words import Pooled, PoolOptions, PoolStats
from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import BadOption, SandboxError, SandboxTimeout, SandboxUnavailable
from bullpen.observing import Observers, PoolSeen

_LOG = logging.getLogger("bullpen.agents.sandbox")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


@dataclass(slots=True)
class _Member:
    sandbox: Sandbox
    since_ms: int = field(default_factory=SYSTEM_CLOCK.now_ms)
    tenant: str | None = None


class SandboxPool:
    """Starts with `start`, ends with `close`; or `async with` it."""

    def __init__(
        self,
        driver: Driver,
        specs: Sequence[SandboxSpec] = (SandboxSpec(),),
        options: PoolOptions | None = None,
        *,
        owner: str = "",
        registry: Registry | None = None,
        observers: Observers | None = None,
    ) -> None:
        self.driver = driver
        self._specs = tuple(specs)
        if not self._specs:
            raise BadOption("specs: one or more, the first being what is lent if nothing is said")
        self._options = options or PoolOptions()
        self._registry = registry or Registry()
        self._maker = Maker(driver, self._registry, owner)
        self.observers = Observers() if observers is None else observers
        self.name = secrets.token_hex(8)
        """Its own, by which it is told from others."""
        self._warm: list[_Member] = []
        self._lent: dict[str, _Member] = {}
        self._room = asyncio.Semaphore(self._options.most)
        self._wake = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._open = False
        self._being_made = 0
        self._acquired = self._from_warm = self._timeouts = 0

    # ── its life ─────────────────────────────────────────────────────────────────────────

    async def start(self) -> list[Entry]:
        """Reap what dead workers left, then begin to warm up; what was reaped."""
        await asyncio.to_thread(self._registry.open)
        reaped = await self._maker.reap()
        self._open = True
        # Owned by this pool, and ended by `close`.
        self._keeper = asyncio.create_task(self._keep(), name="sandboxes")
        return reaped

    async def close(self) -> None:
        """Close all, also those that are lent. Safe to call twice."""
        self._open = False
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            self._keeper = None
        members = [*self._warm, *self._lent.values()]
        self._warm.clear()
        self._lent.clear()
        self._tell()
        await asyncio.gather(*(self._maker.end(member.sandbox) for member in members))
        await self._maker.all_ended()
        await self.driver.close()

    @property
    def usual(self) -> SandboxSpec:
        """What is lent if nothing is said."""
        return self._specs[0]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def restart(self) -> None:
        """Replace all that are unused; those that are lent go when they come back, as always."""
        old, self._warm = self._warm, []
        self._wake.set()
        await asyncio.gather(*(self._maker.end(member.sandbox) for member in old))

    # ── lending ──────────────────────────────────────────────────────────────────────────

    @contextlib.asynccontextmanager
    async def lend(
        self, spec: SandboxSpec | None = None, *, minimum: Level = Level.NONE, tenant: str | None = None
    ) -> AsyncIterator[Sandbox]:
        """A sandbox for the length of a block."""
        sandbox = await self.acquire(spec, minimum=minimum, tenant=tenant)
        try:
            yield sandbox
        finally:
            await self.release(sandbox)

    async def acquire(
        self,
        spec: SandboxSpec | None = None,
        *,
        minimum: Level = Level.NONE,
        tenant: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the caller's choice, and told in the error
    ) -> Sandbox:
        """A fresh sandbox: a warm one of this kind, or one that is made now.

        Raises `SandboxTimeout` if there is none in time, and `IsolationTooWeak` if the walls are below the minimum.
        """
        require(minimum, self.driver.level)
        seconds = self._options.acquire_timeout if timeout is None else timeout
        check_seconds("timeout", seconds)
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                sandbox = await self._acquire(spec or self.usual, tenant)
        except TimeoutError:
            self._timeouts += 1
            self.observers.sandbox_asked(time.monotonic() - began, is_lent=False)
            in_use = f"{len(self._lent)} of {self._options.most} are in use"
            raise SandboxTimeout(f"no sandbox in {seconds:g} s: {in_use}") from None
        self._acquired += 1
        self.observers.sandbox_asked(time.monotonic() - began, is_lent=True)
        return sandbox

    async def _acquire(self, spec: SandboxSpec, tenant: str | None) -> Sandbox:
        await self._room.acquire()
        try:
            self._require_open()
            member = await self._healthy(spec) or await self._fresh(spec)
            if not self._open:
                await self._maker.end(member.sandbox)
                self._require_open()
        except BaseException:
            self._room.release()
            raise
        self._lent[member.sandbox.id] = _Member(member.sandbox, tenant=tenant)
        self._wake.set()
        return member.sandbox

    def _require_open(self) -> None:
        if not self._open:
            raise SandboxUnavailable("the pool of sandboxes is not open")

    async def _healthy(self, spec: SandboxSpec) -> _Member | None:
        """A warm one that answers; None if there is none."""
        while member := next((one for one in self._warm if one.sandbox.spec.key == spec.key), None):
            self._warm.remove(member)
            try:
                healthy = await member.sandbox.ping()
            except asyncio.CancelledError:
                await self._maker.end(member.sandbox)
                raise
            if healthy:
                self._from_warm += 1
                return member
            await self._maker.end(member.sandbox)
        if self._warm and self._total() >= self._options.most:
            await self._maker.end(self._warm.pop(0).sandbox)  # of another kind: it makes room
        return None

    async def _fresh(self, spec: SandboxSpec) -> _Member:
        self._being_made += 1
        try:
            return _Member(await self._maker.make(spec))
        finally:
            self._being_made -= 1

    async def release(self, sandbox: Sandbox) -> None:
        """Give one back: it is closed. Safe to call twice."""
        if self._lent.pop(sandbox.id, None) is None:
            return
        try:
            await self._maker.end(sandbox)
        finally:
            self._room.release()
            self._wake.set()

    # ── keeping it warm ──────────────────────────────────────────────────────────────────

    async def _keep(self) -> None:
        pause = _FIRST_PAUSE_S
        clock = asyncio.get_running_loop().time
        inspect_at = clock() + self._options.check_every
        while True:
            self._wake.clear()
            self._tell()  # whatever changes wakes it; what it makes may take long
            try:
                await self._refill()
                self._tell()
                pause = _FIRST_PAUSE_S
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and tried again
                _LOG.warning("no sandbox could be made, trying again in %.1f s: %s", pause, error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                continue
            try:
                async with asyncio.timeout_at(inspect_at):
                    await self._wake.wait()
            except TimeoutError:
                await self._inspect()
                inspect_at = clock() + self._options.check_every

    async def _refill(self) -> None:
        for spec in self._specs:
            while self._wanted(spec) > 0:
                sandbox = await self._maker.make(spec)
                if self._total() < self._options.most:
                    self._warm.append(_Member(sandbox))
                else:  # lent out meanwhile
                    await self._maker.end(sandbox)

    def _wanted(self, spec: SandboxSpec) -> int:
        there = sum(member.sandbox.spec.key == spec.key for member in self._warm)
        return min(self._options.warm - there, self._options.most - self._total())

    def _total(self) -> int:
        return len(self._warm) + len(self._lent) + self._being_made

    async def _inspect(self) -> None:
        """Drop those that no longer answer, those that could not be ended, and what dead workers left since."""
        for member in list(self._warm):
            if not await member.sandbox.ping() and member in self._warm:
                self._warm.remove(member)
                await self._maker.end(member.sandbox)
        await self._maker.end_again()
        try:
            await self._maker.reap()
        except (SandboxError, OSError):
            _LOG.warning("sandboxes of dead workers could not be reaped", exc_info=True)

    # ── looking ──────────────────────────────────────────────────────────────────────────

    def list(self) -> list[Pooled]:
        """All that this pool has; `Registry.entries` has those of other workers too."""
        warm = [Pooled(m.sandbox.id, "warm", m.sandbox.spec, None, m.since_ms) for m in self._warm]
        lent = [Pooled(m.sandbox.id, "in-use", m.sandbox.spec, m.tenant, m.since_ms) for m in self._lent.values()]
        return warm + lent

    def _tell(self) -> None:
        if self.observers:
            most = self._options.most if self._open else 0
            self.observers.pool_changed(PoolSeen(len(self._warm), len(self._lent), most, self.name))

    def stats(self) -> PoolStats:
        warm, lent = len(self._warm), len(self._lent)
        return PoolStats(warm + lent, warm, lent, self._acquired, self._from_warm, self._timeouts)
