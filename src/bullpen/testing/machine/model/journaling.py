"""What durable steps leave with a job: its journal, and signals that it has not asked for."""

from collections.abc import Sequence

import msgspec

from bullpen.errors import LeaseLost, MailboxFull
from bullpen.job.entries import EntryState, JournalEntry
from bullpen.job.record import JobRef
from bullpen.job.state import FINISHED, State
from bullpen.stores.base import MAX_SIGNALS, Delivery
from bullpen.testing.machine.model.ending import Ending
from bullpen.testing.machine.model.jobs import ModelJob


class Journaling(Ending):
    def append_journal(self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int) -> list[JournalEntry]:
        job = self._running(ref, epoch)
        return [self._append(job, entry) for entry in entries]

    def receive(self, ref: JobRef, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        job = self._running(ref, epoch)
        if _is_done(job, entry.place):
            return job.journal[entry.place]
        found = next((signal for signal in job.mailbox if signal[0] == entry.name), None)
        if found is None:
            return None
        job.mailbox.remove(found)
        return self._append(job, msgspec.structs.replace(entry, value=found[1]))

    def signal(self, ref: JobRef, name: str, payload: bytes) -> Delivery:
        job = self._job(ref, not_in=FINISHED)
        if len(job.mailbox) >= MAX_SIGNALS:
            raise MailboxFull(ref)
        job.mailbox.append((name, payload))
        if job.state != State.DELAYED or name not in (job.record.parked or ()):
            return Delivery.KEPT
        self._to_line(job)
        return Delivery.WOKEN

    def forget_journal(self, ref: JobRef) -> None:
        job = self._job(ref, not_in=[State.ACTIVE])
        job.journal.clear()
        job.mailbox.clear()

    def _running(self, ref: JobRef, epoch: int) -> ModelJob:
        job = self.jobs.get(ref)
        if job is None or job.state != State.ACTIVE or job.record.epoch != epoch:
            raise LeaseLost(ref)
        return job

    def _append(self, job: ModelJob, entry: JournalEntry) -> JournalEntry:
        if not _is_done(job, entry.place):
            job.journal[entry.place] = entry
        return job.journal[entry.place]


def _is_done(job: ModelJob, place: int) -> bool:
    return place in job.journal and job.journal[place].state == EntryState.DONE
