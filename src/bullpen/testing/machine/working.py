"""Rules of workers: they claim, settle, renew, and wait."""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from bullpen.job.record import Lease
from bullpen.job.verdicts import AwaitChildren, Completed, Settlement, Verdict
from bullpen.stores.base import Claimed, Exchanged
from bullpen.testing.machine import drawing
from bullpen.testing.machine.adding import Adding
from bullpen.testing.machine.checks import comparable
from bullpen.testing.machine.walk import do

_LEASE_MS = 2_001_000


class Working(Adding):
    @precondition(lambda self: self._model.jobs)
    @rule(wants=drawing.wants, worker=drawing.workers, lease_ms=drawing.leases_ms, lost=drawing.seldom)
    def claim(self, wants: Mapping[str, int], worker: str, lease_ms: int, lost: bool) -> None:
        request = self._fresh("request")

        async def claim() -> Exchanged:
            return Exchanged((), await self._store.claim(wants, worker=worker, lease_ms=lease_ms, request=request))

        self._tick()
        answer = self._ask(request, claim, lost=lost)
        assert isinstance(answer, Exchanged)
        self._expect_claimed(answer.claimed, wants, worker, lease_ms)

    @precondition(lambda self: self._leases)
    @rule(
        data=st.data(),
        verdicts=st.lists(drawing.verdicts, min_size=1, max_size=3),
        then=drawing.few_drafts,
        lost=drawing.seldom,
    )
    def settle(self, data: st.DataObject, verdicts: list[Verdict], then: list[drawing.Draft], lost: bool) -> None:
        self._both_settle(self._draw_settlements(data, verdicts, then), lost=lost)

    def _both_settle(self, settlements: Sequence[Settlement], *, lost: bool = False) -> None:
        request = self._fresh("request")

        async def settle() -> Exchanged:
            return Exchanged(tuple(await self._store.settle(settlements, request=request)))

        self._tick()
        answer = self._ask(request, settle, lost=lost)
        assert isinstance(answer, Exchanged)
        assert list(answer.settled) == self._model.settle(settlements)

    @precondition(lambda self: self._model.jobs)
    @rule(
        data=st.data(),
        verdicts=st.lists(drawing.verdicts, max_size=3),
        then=drawing.few_drafts,
        wants=drawing.wants,
        worker=drawing.workers,
        lost=drawing.seldom,
    )
    def exchange(
        self,
        data: st.DataObject,
        verdicts: list[Verdict],
        then: list[drawing.Draft],
        wants: Mapping[str, int],
        worker: str,
        lost: bool,
    ) -> None:
        settlements = self._draw_settlements(data, verdicts, then)
        request = self._fresh("request")

        def exchange() -> Coroutine[Any, Any, Exchanged]:
            return self._store.exchange(settlements, wants, worker=worker, lease_ms=_LEASE_MS, request=request)

        self._tick()
        answer = self._ask(request, exchange, lost=lost)
        assert isinstance(answer, Exchanged)
        assert list(answer.settled) == self._model.settle(settlements)
        self._expect_claimed(answer.claimed, wants, worker, _LEASE_MS)

    @precondition(lambda self: self._model.jobs)
    @rule(data=st.data(), queue=drawing.queues, verdict=drawing.verdicts, then=drawing.few_drafts)
    def run_one(self, data: st.DataObject, queue: str, verdict: Verdict, then: list[drawing.Draft]) -> None:
        """The common case: a job is claimed and settled at once."""
        known = len(self._leases)
        self.claim({queue: 1}, "worker-1", _LEASE_MS, lost=False)
        if len(self._leases) > known:
            self.both_agree()
            self.settle(data, [verdict], then, lost=False)

    @precondition(lambda self: self._leases)
    @rule(data=st.data(), batch=drawing.new_children, lost=drawing.seldom, awaited=st.booleans())
    def add_children(self, data: st.DataObject, batch: list[drawing.Draft], lost: bool, awaited: bool) -> None:
        """For a lease that is held, more often than not; and then the job waits for them, or goes on."""
        held = [lease for lease in self._leases if self._model.held(lease) is not None]
        lease = data.draw(st.sampled_from([*held[::-1] * 3, *self._leases]), "lease")
        jobs = self._named_apart(batch, as_children=True)
        request = self._fresh("request")
        answer = self._ask(request, lambda: self._store.add_children(lease, jobs, request=request), lost=lost)
        self._learn_ids(jobs, answer)
        assert answer == do(lambda: self._model.add_children(lease, jobs))
        if awaited:
            self._both_settle([Settlement(lease, AwaitChildren())])

    @precondition(lambda self: self._leases)
    @rule(data=st.data(), lease_ms=drawing.leases_ms)
    def renew(self, data: st.DataObject, lease_ms: int) -> None:
        leases = data.draw(st.lists(st.sampled_from(self._leases), min_size=1, max_size=3), "leases")
        self._both("renew", leases, lease_ms=lease_ms)

    @rule(queue=drawing.queues, worker=drawing.workers)
    def look_for_work(self, queue: str, worker: str) -> None:
        may_run = self._run(self._store.wait([queue], timeout_ms=0))
        assert may_run or not self._model.is_runnable(queue), "slept through a runnable job"
        notices = self._run(self._store.notices(worker, timeout_ms=0))
        told = {(notice.lease, notice.reason) for notice in notices}
        assert self._model.notices(worker, run_out=False) <= told <= self._model.notices(worker, run_out=True)

    def _expect_claimed(self, answer: Claimed, wants: Mapping[str, int], worker: str, lease_ms: int) -> None:
        jobs, next_due_ms = self._model.claim(wants, worker=worker, lease_ms=lease_ms)
        if self._model.has_expired:
            order = {claimed.job.ref: n for n, claimed in enumerate(answer.jobs)}
            jobs.sort(key=lambda job: order.get(job.ref, -1))
        assert [comparable(claimed.job) for claimed in answer.jobs] == [comparable(job.record) for job in jobs]
        assert self._is_about(answer.next_due_ms, next_due_ms)
        for job, lease in zip(jobs, leases_of(answer), strict=True):
            assert (lease.ref, lease.epoch) == (job.ref, job.record.epoch)
            assert lease.token not in {other.token for other in self._leases}, "a token given twice"
            job.lease = lease
            self._leases.append(lease)

    def _draw_settlements(
        self, data: st.DataObject, verdicts: Sequence[Verdict], then: Sequence[drawing.Draft]
    ) -> list[Settlement]:
        """For leases that are held, more often than for any that ever was given."""
        if not self._leases:
            return []
        leases = st.sampled_from(self._running_first())
        settlements = [Settlement(data.draw(leases, "lease"), verdict) for verdict in verdicts]
        for n, (lease, verdict) in enumerate((each.lease, each.verdict) for each in settlements):
            if isinstance(verdict, Completed):
                followers = tuple(self._named(draft) for draft in then)
                settlements[n] = Settlement(lease, Completed(verdict.result, followers))
        return settlements


def leases_of(claimed: Claimed) -> list[Lease]:
    return [job.lease for job in claimed.jobs]
