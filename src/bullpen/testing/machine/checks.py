"""What holds after every step, and what is looked at once more when a walk ends."""

import msgspec
from hypothesis.stateful import invariant

from bullpen.errors import JobMissing
from bullpen.job.events import Event, EventKind
from bullpen.job.record import FailureKind, JobRecord
from bullpen.job.state import READY, State
from bullpen.testing.machine.walk import PAGE, Walk, or_refusal

_STATES_OF: dict[EventKind, frozenset[State]] = {
    EventKind.WAITING: READY,
    EventKind.DELAYED: frozenset({State.DELAYED}),
    EventKind.WAITING_CHILDREN: frozenset({State.WAITING_CHILDREN}),
    EventKind.ACTIVE: frozenset({State.ACTIVE}),
    EventKind.COMPLETED: frozenset({State.COMPLETED}),
    EventKind.FAILED: frozenset({State.FAILED}),
    EventKind.REMOVED: frozenset(),
}
"""Which state a job is in after an event of this kind."""


class Checks(Walk):
    @invariant()
    def both_agree(self) -> None:
        self._every_job_is_in_exactly_one_place()
        self._queues_are_as_told()
        self._parents_know_their_children()
        self._the_log_tells_where_each_job_is()
        self._model.note_resting(self._sight.schedules)
        assert self._sight.schedules == self._model.all_schedules()
        self._compared = True

    def _every_job_is_in_exactly_one_place(self) -> None:
        """Also: in the right order, with the right record."""
        for queue in self._model.queues:
            for state in State:
                found = [comparable(record) for record in self._sight.jobs.get((queue, state), [])]
                expected = [comparable(job.record) for job in self._model.line(queue, state)]
                if state in (State.ACTIVE, State.WAITING_CHILDREN):  # their order is the store's own
                    found.sort(key=lambda record: record.ref)
                    expected.sort(key=lambda record: record.ref)
                assert found == expected, f"{state} in {queue}"

    def _queues_are_as_told(self) -> None:
        queues = sorted(self._model.queues)
        assert self._sight.counts == {queue: self._model.counts(queue) for queue in queues}
        for queue in queues:
            self._model.stand(queue)
        assert self._sight.groups == {queue: self._model.groups(queue, limit=100) for queue in queues}
        self._limits_are_as_told()
        assert self._sight.oldest_ms == {queue: self._model.oldest_waiting_ms(queue) for queue in queues}

    def _limits_are_as_told(self) -> None:
        for queue in self._model.queues:
            found, expected = self._sight.limits[queue], self._model.queue_standing(queue)
            assert found.limits == expected.limits
            assert self._is_about(found.closed_until_ms, expected.closed_until_ms), f"closing of {queue}"

    def _parents_know_their_children(self, *, all_of_them: bool = False) -> None:
        """After a step those of whose children something has changed; when a walk ends, all of them."""
        expected = {parent.ref: self._model.children(parent.ref) for parent in self._model.bonds}
        parents = [ref for ref in expected if all_of_them or expected[ref] != self._families.get(ref)]
        for parent, told in zip(parents, self._run(self._read_children(parents)), strict=True):
            found = {(child.ref, child.state, child.result) for child in told}
            assert found == expected[parent], f"children of {parent}"
            assert len(told) == len(found)
        self._families = expected

    def _the_log_tells_where_each_job_is(self) -> None:
        for queue, told in self._told.items():
            last = {event.job_id: event.kind for event in told if event.kind in _STATES_OF}
            for ref, job in self._model.jobs.items():
                if ref.queue == queue:
                    assert job.state in _STATES_OF[last[ref.id]], f"{ref} is {job.state}, last told {last[ref.id]}"

    def teardown(self) -> None:
        with self._exit:
            try:
                if self._compared:  # else a step has failed, and says more than what follows from it
                    self._parents_know_their_children(all_of_them=True)
                    self._check_pages()
                    self._check_log_from_its_start()
            finally:
                self._run(self._store.close())
            self._run(self._harness.check())

    def _check_pages(self) -> None:
        """Backwards is the same backwards, and each job alone is the same as in its page."""
        for queue, state in [(queue, state) for queue in self._model.queues for state in State]:
            records = self._sight.jobs.get((queue, state), [])
            assert self._run(self._read_jobs(queue, state, newest_first=True)) == records[::-1]
            for record in records:
                assert self._run(self._store.job(record.ref)) == record
                lines = self._run(self._store.logs(record.ref)).total
                assert lines == self._model.jobs[record.ref].log_lines
                journal = self._run(self._store.read_journal(record.ref)).entries
                assert list(journal) == [entry for _, entry in sorted(self._model.jobs[record.ref].journal.items())]
        for ref in {lease.ref for lease in self._leases} - self._model.jobs.keys():
            assert self._run(or_refusal(self._store.job(ref))) is JobMissing

    def _check_log_from_its_start(self) -> None:
        """The same in small pages; each event has a cursor of its own, from which the log goes on."""
        for queue, told in self._told.items():
            cursor, read = self._starts[queue], list[Event]()
            while page := self._run(self._read_log(queue, cursor, limit=PAGE)):
                read += page
                cursor = page[-1].cursor
            assert read == told
            assert len({event.cursor for event in read}) == len(read)
            assert [event.at_ms for event in read] == sorted(event.at_ms for event in read)


def comparable(record: JobRecord) -> JobRecord:
    """Without what a store may word, or keep of earlier attempts, as it likes."""
    failure, doomed = record.failure, record.doomed
    if failure is not None and failure.kind != FailureKind.ERROR:
        failure = msgspec.structs.replace(failure, message="")
    if doomed is not None:
        record = msgspec.structs.replace(record, doomed=msgspec.structs.replace(doomed, message=""))
    if record.state == State.ACTIVE:
        return msgspec.structs.replace(record, failure=failure)
    return msgspec.structs.replace(record, failure=failure, worker=None, started_ms=None)
