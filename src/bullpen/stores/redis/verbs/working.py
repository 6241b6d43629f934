"""Adding jobs, and running them."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

import msgspec

from bullpen.errors import StoreError
from bullpen.job.record import CrashKind, CrashLimits, Lease
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import (
    Added,
    Claimed,
    Exchanged,
    Notice,
    Renewal,
    Rescued,
    SettleOutcome,
    WorkerInfo,
    WorkerState,
)
from bullpen.stores.redis import families, looking, rescuing
from bullpen.stores.redis.asking import ClaimBounds, LeaseTerms, Moment, ask_abandon, ask_exchange, ask_renew
from bullpen.stores.redis.naming import worker_name
from bullpen.stores.redis.opened import OpenSite
from bullpen.stores.redis.reading import read_exchanged
from bullpen.stores.redis.scripts import ABANDON, BEAT, EXCHANGE, RENEW
from bullpen.stores.redis.waiting import Sleep

_GIVE_UP_S = 2.0

_encode = msgspec.json.Encoder().encode


class Working(OpenSite):
    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        return await families.add(self._site, jobs, request)

    async def add_children(self, lease: Lease, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        return await families.add_children(self._site, lease, jobs, request)

    async def claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
        held_elsewhere: bool = False,  # noqa: ARG002 - as all leases here: no process is watched
        group: str | None = None,
    ) -> Claimed:
        bounds = ClaimBounds(at_most, group)
        return (await self._exchange((), wants, worker, lease_ms, request, bounds)).claimed

    async def settle(self, settlements: Sequence[Settlement], *, request: str) -> Sequence[SettleOutcome]:
        exchanged = await self.exchange(settlements, {}, worker="", lease_ms=0, request=request)
        return exchanged.settled

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
    ) -> Exchanged:
        return await self._exchange(settlements, wants, worker, lease_ms, request, ClaimBounds(at_most))

    async def _exchange(
        self,
        settlements: Sequence[Settlement],
        wants: Mapping[str, int],
        worker: str,
        lease_ms: int,
        request: str,
        bounds: ClaimBounds,
    ) -> Exchanged:
        now_ms = self._clock.now_ms()
        terms = self._lease_terms(worker, lease_ms)
        message = ask_exchange(self._keys, settlements, wants, terms, Moment(now=now_ms), bounds)
        answer = await self._connection.run(EXCHANGE, self._keys.request(request), message)
        return read_exchanged(answer, self._keys)

    def _lease_terms(self, worker: str, lease_ms: int) -> LeaseTerms:
        return LeaseTerms(f"{self._instance}:{next(self._claims)}", worker, lease_ms)

    async def renew(self, leases: Sequence[Lease], *, lease_ms: int) -> Sequence[Renewal]:
        if not leases:
            return []
        message = ask_renew(self._keys, leases, lease_ms)
        words = await self._connection.run(RENEW, self._keys.meta(leases[0].ref.queue), message)
        return [Renewal(word.decode()) for word in words]

    async def abandon(self, request: str) -> int:
        return int(await self._connection.run(ABANDON, self._keys.request(request), ask_abandon(self._clock.now_ms())))

    async def wait(self, queues: Sequence[str], *, timeout_ms: int) -> bool:
        sleep = Sleep(self._connection, self._keys, self._clock, queues)
        try:
            return await sleep.until_work(timeout_ms)
        finally:
            await sleep.put_back()

    async def wait_and_claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        timeout_ms: int,
        at_most: int | None = None,
    ) -> Exchanged:
        terms, bounds = self._lease_terms(worker, lease_ms), ClaimBounds(at_most)

        def ask(moment: Moment) -> tuple[str, bytes]:
            return self._keys.request(request), ask_exchange(self._keys, (), wants, terms, moment, bounds)

        sleep = Sleep(self._connection, self._keys, self._clock, tuple(wants))
        try:
            answer = await sleep.until_claimed(ask, timeout_ms)
        except asyncio.CancelledError:
            await self._abandon_soon(request)
            raise
        finally:
            await sleep.put_back()
        return Exchanged() if answer is None else read_exchanged(answer, self._keys)

    async def _abandon_soon(self, request: str) -> None:
        """A server that is away finds out by itself, when the leases run out."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_GIVE_UP_S):
                await self.abandon(request)

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        return await rescuing.notices(self._site, worker, timeout_ms)

    async def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> Rescued:
        return await rescuing.rescue(self._site, queues, limits)

    async def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> Rescued:
        return await rescuing.report_crash(self._site, worker, kind, limits)

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        now_ms = self._clock.now_ms()
        words = _encode(msgspec.structs.replace(info, beat_ms=now_ms))
        keys = self._keys
        await self._connection.run(
            BEAT, keys.workers, keys.worker_infos, info.name, words, str(now_ms), str(now_ms + ttl_ms)
        )
        await self._show_names(info)

    async def _show_names(self, info: WorkerInfo) -> None:
        is_gone = info.state == WorkerState.STOPPED
        queues = () if is_gone else info.queues
        self._names[info.name] = {worker_name(self._prefix, queue, info.name) for queue in queues}
        await self._named.keep(set().union(*self._names.values()))

    async def workers(self) -> Sequence[WorkerInfo]:
        return await looking.workers(self._site)
