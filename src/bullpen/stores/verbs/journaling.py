"""Durable steps: the journal and the mailbox of a job."""

from collections.abc import Sequence
from typing import Protocol

from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.record import JobRef
from bullpen.stores.answers import Delivery


class Journaling(Protocol):
    async def append_journal(
        self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int
    ) -> Sequence[JournalEntry]:
        """Record these steps of a running job, all or none; each as it stands afterwards.

        What is done stays as it is: an entry for its place changes nothing and gets what is there, so
        a lost answer is asked for again. What is open or failed gives way. LeaseLost unless the
        job is active in this very activation. The journal goes when its job is forgotten, not before.
        """

    async def read_journal(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        """The recorded steps from a place on, of that many places at most. JobMissing."""

    async def receive(self, ref: JobRef, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        """Take the oldest signal named as the entry is out of the mailbox and into the journal, in one step.

        Its payload becomes the entry's value. The entry as it stands; None if there is no such
        signal. A place that is done keeps what it has, and no signal is taken. LeaseLost as above.
        """

    async def fork_journal(self, ref: JobRef, at: int, to: JobRef) -> int:
        """Copy what was recorded before a place to another job, whose journal is empty; how many entries.

        WrongState if the other is active, finished, or has a journal.
        """

    async def forget_journal(self, ref: JobRef) -> None:
        """Drop the journal and the mailbox of a job that is not active. Active: WrongState."""

    async def signal(self, ref: JobRef, name: str, payload: bytes, *, request: str) -> Delivery:
        """Put a signal into the job's mailbox; if the job is parked and waits for it, it is runnable at once.

        Each is received once, in the order in which they came. JobMissing; finished: WrongState;
        MAX_SIGNALS wait already: MailboxFull.
        """
