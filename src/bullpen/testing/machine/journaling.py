"""Rules of programs with durable steps, and of those who signal to them."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from bullpen.job.entries import JournalEntry
from bullpen.job.record import JobRef
from bullpen.testing.machine import drawing
from bullpen.testing.machine.checks import Checks
from bullpen.testing.machine.walk import lose_answer, or_refusal


class Journaling(Checks):
    @precondition(lambda self: self._leases)
    @rule(data=st.data(), entries=drawing.entry_batches, lost=drawing.seldom)
    def append_journal(self, data: st.DataObject, entries: list[JournalEntry], lost: bool) -> None:
        lease = data.draw(st.sampled_from(self._running_first()), "lease")
        if lost:
            self._run(lose_answer(lambda: self._store.append_journal(lease.ref, entries, epoch=lease.epoch)))
        self._both("append_journal", lease.ref, entries, epoch=lease.epoch)

    @precondition(lambda self: self._leases)
    @rule(data=st.data(), entry=drawing.waits)
    def receive(self, data: st.DataObject, entry: JournalEntry) -> None:
        lease = data.draw(st.sampled_from(self._running_first()), "lease")
        self._both("receive", lease.ref, entry, epoch=lease.epoch)

    @precondition(lambda self: self._model.jobs)
    @rule(data=st.data(), name=drawing.signals, payload=drawing.payloads, lost=drawing.seldom)
    def signal(self, data: st.DataObject, name: str, payload: bytes, lost: bool) -> None:
        self._tick()
        jobs = self._model.jobs
        parked = [ref for ref, job in jobs.items() if job.record.parked]
        ref = data.draw(st.sampled_from([*parked * 4, *jobs, JobRef("a", "nobody")]), "ref")
        request = self._fresh("request")
        if lost:
            self._run(lose_answer(lambda: self._store.signal(ref, name, payload, request=request)))
        answer = self._run(or_refusal(self._store.signal(ref, name, payload, request=request)))
        self._look()
        assert answer == self._of_model("signal", ref, name, payload)

    @precondition(lambda self: self._model.jobs)
    @rule(data=st.data())
    def forget_journal(self, data: st.DataObject) -> None:
        jobs = self._model.jobs
        with_steps = [ref for ref, job in jobs.items() if job.journal or job.mailbox]
        self._both("forget_journal", data.draw(st.sampled_from([*with_steps * 4, *jobs]), "ref"))
