"""What remote workers ask for, beside claims: heartbeats, words, steps, and how attempts ended.

Nothing is kept here that a worker depends on: a lease travels with each call, and the store knows it.
"""

from collections import OrderedDict

import msgspec
from starlette.requests import Request

from bullpen.errors import BadOption, LeaseLost, StoreUnavailable
from bullpen.job.record import Lease
from bullpen.job.verdicts import Settlement
from bullpen.remote import messages
from bullpen.remote.messages import Entry, LeaseState
from bullpen.remote.settling import Fail, Retry, SettleAnswer, SettleAsk
from bullpen.server.access.caller import Caller
from bullpen.server.looking import look_up
from bullpen.server.remote.bell import Bells
from bullpen.server.remote.claiming import Claims
from bullpen.server.remote.judging import checked, judge
from bullpen.server.remote.presence import Presence
from bullpen.server.remote.scope import (
    Holdings,
    check_count,
    check_info,
    check_queues,
    check_wait_s,
    own_request,
    worker_name,
)
from bullpen.server.remote.upkeep import Upkeep
from bullpen.stores.base import Renewal, SettleOutcome, Store, WorkerInfo
from bullpen.worker.options import WorkerOptions

_BEAT_TTL_MS = 30_000
_REMEMBERED = 10_000


class RemoteDesk:
    """Serves remote workers on behalf of a store."""

    def __init__(self, store: Store, options: WorkerOptions | None = None) -> None:
        self._store = store
        self._options = options or WorkerOptions()
        self._bells = Bells(store)
        self._claims = Claims(store, self._bells, self._options)
        self._holdings = Holdings(store)
        self._upkeep = Upkeep(store, self._options)
        self._present: set[Presence] = set()
        self._is_closed = False
        self._lines: OrderedDict[str, int] = OrderedDict()
        """Answers to `log`, so that lines whose answer was lost are not written twice, at least not here."""

    def watch(self, request: Request) -> Presence:
        """Whether who calls is there, for as long as their call may wait; no call waits for a server that stops."""
        if self._is_closed:
            raise StoreUnavailable("the server stops; ask again")
        return Presence(request, self._present)

    async def close(self) -> None:
        """End the calls that wait, and what goes on beside calls; safe to call twice."""
        self._is_closed = True
        for presence in self._present:
            presence.end()
        await self._bells.close()
        await self._upkeep.stop()

    # ── finding work ─────────────────────────────────────────────────────────────────────

    async def claim(self, caller: Caller, ask: messages.ClaimAsk, presence: Presence) -> messages.ClaimAnswer:
        check_queues(caller, ask.queues)
        self._upkeep.serve(ask.queues)
        answer = await self._claims.claim(caller, ask, presence)
        self._upkeep.serve({job.queue for job in answer.jobs}, lease_ms=ask.lease_ms, exist=True)
        return answer

    async def wait(self, caller: Caller, ask: messages.WaitAsk, presence: Presence) -> messages.WaitAnswer:
        if not ask.queues:
            raise BadOption("queues: name at least one")
        check_queues(caller, ask.queues)
        check_wait_s(ask.wait_s)
        self._upkeep.serve(ask.queues)
        bell = self._bells.of(caller.tenant)
        return messages.WaitAnswer(bool(await presence.or_gone(bell.wait(ask.queues, ask.wait_s))))

    # ── while a job runs ─────────────────────────────────────────────────────────────────

    async def heartbeat(self, caller: Caller, ask: messages.HeartbeatAsk) -> messages.HeartbeatAnswer:
        leases = [one.lease for one in ask.leases]
        renewals = await self._renew(caller, leases, ask.lease_ms)
        if ask.info is not None:
            await self._beat(caller, ask.info)
        reasons = await self._reasons(leases, renewals)
        states = [
            LeaseState(renewal, reasons.get(lease.token)) for lease, renewal in zip(leases, renewals, strict=True)
        ]
        return messages.HeartbeatAnswer(states, self._store.clock.now_ms())

    async def _renew(self, caller: Caller, leases: list[Lease], lease_ms: int) -> list[Renewal]:
        renewals = await self._holdings.renew(caller, leases, lease_ms)
        held = {lease.ref.queue for lease, how in zip(leases, renewals, strict=True) if how != Renewal.LOST}
        self._upkeep.serve(held, lease_ms=lease_ms, exist=True)
        return renewals

    async def _hold(self, caller: Caller, lease: Lease, lease_ms: int) -> None:
        """LeaseLost unless the caller holds it; whoever speaks of its job is alive, so it is extended too."""
        if await self._renew(caller, [lease], lease_ms) == [Renewal.LOST]:
            raise LeaseLost(f"job {lease.ref} is not yours any more")

    async def _beat(self, caller: Caller, info: WorkerInfo) -> None:
        check_info(caller, info)
        named = msgspec.structs.replace(info, name=worker_name(caller, info.name))
        await self._store.beat(named, ttl_ms=_BEAT_TTL_MS)

    async def _reasons(self, leases: list[Lease], renewals: list[Renewal]) -> dict[str, str]:
        stopping = [lease for lease, renewal in zip(leases, renewals, strict=True) if renewal == Renewal.CANCELLING]
        jobs = await look_up(self._store, (lease.ref for lease in stopping))
        return {lease.token: jobs[lease.ref].cancelling or "" for lease in stopping if lease.ref in jobs}

    async def notices(self, caller: Caller, ask: messages.NoticesAsk, presence: Presence) -> messages.NoticesAnswer:
        """Which of a worker's jobs are to stop, waiting for the first."""
        check_wait_s(ask.wait_s)
        name = worker_name(caller, ask.worker)
        found = await presence.or_gone(self._store.notices(name, timeout_ms=round(ask.wait_s * 1000)))
        return messages.NoticesAnswer(
            [messages.RemoteNotice(messages.HeldLease.of(one.lease), one.reason) for one in found or ()]
        )

    async def progress(self, caller: Caller, ask: messages.ProgressAsk) -> messages.Nothing:
        value = checked(ask.value, "progress")
        await self._hold(caller, ask.lease.lease, ask.lease_ms)
        await self._store.set_progress(ask.lease.lease.ref, value)
        return messages.Nothing()

    async def log(self, caller: Caller, ask: messages.LogAsk) -> messages.LogAnswer:
        check_count("lines", len(ask.lines))
        request = own_request(caller, "log", ask.request)
        await self._hold(caller, ask.lease.lease, ask.lease_ms)
        if request not in self._lines:
            self._lines[request] = await self._store.add_log(ask.lease.lease.ref, ask.lines)
            if len(self._lines) > _REMEMBERED:
                self._lines.popitem(last=False)
        return messages.LogAnswer(self._lines[request])

    async def step(self, caller: Caller, ask: messages.StepAsk) -> messages.StepAnswer:
        """The journal: what is recorded stays, so every call may be made again."""
        check_count("record", len(ask.record))
        lease = ask.lease.lease
        await self._hold(caller, lease, ask.lease_ms)
        if ask.receive is not None:
            received = await self._store.receive(lease.ref, ask.receive.entry, epoch=lease.epoch)
            return messages.StepAnswer([] if received is None else [Entry.of(received)])
        if ask.record:
            entries = [one.entry for one in ask.record]
            standing = await self._store.append_journal(lease.ref, entries, epoch=lease.epoch)
            return messages.StepAnswer([Entry.of(entry) for entry in standing])
        check_count("limit", ask.limit)
        page = await self._store.read_journal(lease.ref, start=ask.start, limit=ask.limit)
        return messages.StepAnswer([Entry.of(entry) for entry in page.entries], page.next_place)

    # ── settling ─────────────────────────────────────────────────────────────────────────

    async def settle(self, caller: Caller, ask: SettleAsk) -> SettleAnswer:
        """Carry out each verdict once, however often it is sent; a lost lease changes nothing."""
        leases = [said.lease.lease for said in ask.settlements]
        own = await self._holdings.own(caller, leases)
        to_judge = [said for said in ask.settlements if isinstance(said, Fail | Retry)]
        jobs = await look_up(self._store, (said.lease.lease.ref for said in to_judge))
        one_tenant = caller.tenant is not None
        settlements = [
            Settlement(lease, judge(said, jobs.get(lease.ref), self._options, one_tenant=one_tenant))
            for said, lease in zip(ask.settlements, leases, strict=True)
            if lease.ref in own
        ]
        request = own_request(caller, "settle", ask.request)
        settled = iter(await self._store.settle(settlements, request=request))
        return SettleAnswer([next(settled) if lease.ref in own else SettleOutcome.LEASE_LOST for lease in leases])
