"""Adding jobs: explicit ids, deduplication, and the place where a new job goes."""

from collections.abc import Sequence

import msgspec

from bullpen.errors import LeaseLost
from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRef, Lease
from bullpen.job.spec import KEEP_ALL, KEEP_COMPLETED, Dedup, JobSpec, NewJob
from bullpen.job.trees import Node, flatten
from bullpen.stores.base import Added, AddOutcome
from bullpen.stores.sqlite.duplicates import is_taken, owner_of
from bullpen.stores.sqlite.family import adopt, release_if_ready
from bullpen.stores.sqlite.forgetting import forget
from bullpen.stores.sqlite.planting import Above, Relations, check_free, gather_added
from bullpen.stores.sqlite.schema import ACTIVE, DELAYED, READY, WAITING_CHILDREN
from bullpen.stores.sqlite.sizing import check_sizes
from bullpen.stores.sqlite.tokens import key_and_token
from bullpen.stores.sqlite.transaction import Row, Transaction, blob, counter_of

_COLUMNS = (
    "key", "queue", "own_id", "state", "priority", "position", "added_ms", "entered_ms", "due_ms", "start_by_ms",
    "tenant", "group_name", "dedup", "keep",
)  # fmt: skip
_INSERT_BODY = "INSERT INTO body(key, name, data, spec) VALUES"

_TOLD = {
    READY: EventKind.WAITING,
    DELAYED: EventKind.DELAYED,
    WAITING_CHILDREN: EventKind.WAITING_CHILDREN,
}

# Looked up once, not for each job: see completing.py.
_NEW, _ADDED = EventKind.ADDED, AddOutcome.ADDED

_encode = msgspec.json.Encoder().encode
decode_new_job = msgspec.json.Decoder(NewJob).decode


def add(tx: Transaction, jobs: Sequence[NewJob]) -> list[Added]:
    return _add_trees(tx, flatten(jobs), None) if _has_trees(jobs) else _add_plain(tx, jobs)


def add_checked(tx: Transaction, jobs: Sequence[NewJob]) -> list[Added]:
    """The same; before anything is written WrongState for a child that is another's, GroupFull if that has no room."""
    if _has_trees(jobs):
        nodes = flatten(jobs)
        check_free(tx, nodes, None)
        check_sizes(tx, jobs)
        return _add_trees(tx, nodes, None)
    if any(job.spec.group is not None for job in jobs):
        check_sizes(tx, jobs)
    return _add_plain(tx, jobs)


def _has_trees(jobs: Sequence[NewJob]) -> bool:
    return any(job.children for job in jobs)


def _add_plain(tx: Transaction, jobs: Sequence[NewJob]) -> list[Added]:
    batch = _Batch(tx, len(jobs))
    answers = [batch.add(job) for job in jobs]
    batch.write()
    return answers


def add_children(tx: Transaction, lease: Lease, jobs: Sequence[NewJob]) -> list[Added]:
    """As children of the job that is held under this lease."""
    key, token = key_and_token(lease)
    held = tx.db.execute(f"SELECT 1 FROM job WHERE key = ? AND token = ? AND state = {ACTIVE}", (key, token)).fetchone()
    if held is None:
        raise LeaseLost(f"job {lease.ref.id!r} of queue {lease.ref.queue!r} is no longer held under this lease")
    nodes = flatten(jobs)
    check_free(tx, nodes, key)
    check_sizes(tx, jobs)
    if nodes:
        tx.db.execute("UPDATE job SET has_children = 1 WHERE key = ?", (key,))
    return _add_trees(tx, nodes, Above(key, str(lease.ref), is_older=True))


def _add_trees(tx: Transaction, nodes: Sequence[Node], head: Above | None) -> list[Added]:
    """Parents before their children; what stands below a duplicate is left out."""
    batch = _Batch(tx, len(nodes))
    added: list[Added | None] = []
    parents: list[Above] = []
    places: dict[int, Above] = {}
    for n, node in enumerate(nodes):
        above = head if node.parent is None else places.get(node.parent)
        if node.parent is not None and above is None:
            added.append(None)
            batch.skip()
            continue
        key = batch.next_key
        answer = batch.add(node.job, above)
        added.append(answer)
        if answer.outcome == AddOutcome.ADDED and node.job.children:
            places[n] = Above(key, str(JobRef(node.job.queue, answer.id)))
            parents.append(places[n])
    batch.write()
    for parent in parents:
        release_if_ready(tx, parent.key)
    return gather_added(nodes, added)


class _Batch:
    """Rows of plain jobs are gathered and written together; whoever must look first, writes first."""

    def __init__(self, tx: Transaction, size: int) -> None:
        self._tx = tx
        self.next_key = tx.take_numbers(size)
        self._jobs: list[Row] = []
        self._bodies: list[Row] = []
        self._relations = Relations(tx)

    def skip(self) -> None:
        self.next_key += 1

    def add(self, job: NewJob, above: Above | None = None) -> Added:
        queue = self._tx.queue(job.queue)
        key = self.next_key
        self.next_key += 1
        if job.id is not None and (known := self._known(queue, job.id, job)):
            if above is not None:
                adopt(self._tx, queue, job.id, above.key, above.ref, job.spec.on_failure)
            return known
        if above is not None or job.children:
            self._relations.enter(queue, key, job, above)
        if job.spec.dedup is not None:
            self.write()
            return self._add_deduplicated(queue, key, job, job.spec.dedup)
        return self._place(queue, key, job, _ADDED)

    def write(self) -> None:
        if self._jobs:
            self._tx.insert_rows("job", _COLUMNS, self._jobs)
            self._tx.execute_rows(_INSERT_BODY, "", self._bodies)
            self._jobs, self._bodies = [], []
            self._relations.write()

    def _known(self, queue: int, own_id: str, job: NewJob) -> Added | None:
        self.write()
        tx = self._tx
        if not is_taken(tx, queue, own_id):
            return None
        tx.tell(queue, Event(EventKind.DUPLICATED, own_id, tx.now_ms, job.spec.tenant, name=job.name))
        return Added(own_id, AddOutcome.DUPLICATE)

    def _place(self, queue: int, key: int, job: NewJob, outcome: AddOutcome) -> Added:
        tx, spec, now_ms = self._tx, job.spec, self._tx.now_ms
        job_id = job.id or str(key)
        delayed = spec.delay_ms > 0 and not job.children
        state = WAITING_CHILDREN if job.children else DELAYED if delayed else READY
        due_ms = now_ms + spec.delay_ms if delayed else None
        self._jobs.append(
            (
                key,
                queue,
                job.id,
                state,
                spec.priority,
                -key if spec.lifo and not delayed else key,
                now_ms,
                now_ms,
                due_ms,
                spec.start_by_ms,
                spec.tenant,
                spec.group,
                spec.dedup.id if spec.dedup else None,
                keep_if_special(spec),
            )
        )
        self._bodies.append((key, job.name, blob(job.data), blob(_encode(spec))))
        tx.count(queue, counter_of(state, spec.priority), 1)
        if spec.group is not None:
            tx.count_grouped(queue, spec.group, state, 1)
        tx.now_runnable(queue)
        recorded_ms = None if spec.tags or spec.workspace is not None else now_ms
        new = Event(_NEW, job_id, now_ms, spec.tenant, name=job.name, recorded_ms=recorded_ms, priority=spec.priority)
        tx.tell(queue, new)
        tx.tell(queue, Event(_TOLD[state], job_id, now_ms, spec.tenant, run_at_ms=due_ms))
        return Added(job_id, outcome)

    # ── deduplication ────────────────────────────────────────────────────────────────────

    def _add_deduplicated(self, queue: int, key: int, job: NewJob, dedup: Dedup) -> Added:
        owner = owner_of(self._tx, queue, dedup.id)
        if owner is None:
            return self._own(queue, key, job, dedup, AddOutcome.ADDED)
        owner_key, owner_id, owner_state = owner
        if dedup.replace and owner_state == DELAYED:
            return self._replace(queue, key, job, dedup, owner_key, owner_id)
        if dedup.keep_last_if_active and owner_state == ACTIVE:
            self._tx.db.execute("UPDATE dedup SET next = ? WHERE queue = ? AND id = ?", (_encode(job), queue, dedup.id))
            return self._deduplicated(queue, key, job, owner_id, AddOutcome.KEPT_LAST)
        if dedup.extend and dedup.ttl_ms is not None:
            self._tx.db.execute(
                "UPDATE dedup SET until_ms = ? WHERE queue = ? AND id = ?",
                (self._tx.now_ms + dedup.ttl_ms, queue, dedup.id),
            )
        return self._deduplicated(queue, key, job, owner_id, AddOutcome.DEDUPLICATED)

    def _own(self, queue: int, key: int, job: NewJob, dedup: Dedup, outcome: AddOutcome) -> Added:
        until_ms = None if dedup.ttl_ms is None else self._tx.now_ms + dedup.ttl_ms
        self._tx.db.execute(
            "INSERT OR REPLACE INTO dedup(queue, id, owner, owner_id, until_ms) VALUES(?, ?, ?, ?, ?)",
            (queue, dedup.id, key, job.id or str(key), until_ms),
        )
        return self._place(queue, key, job, outcome)

    def _replace(self, queue: int, key: int, job: NewJob, dedup: Dedup, owner_key: int, owner_id: str) -> Added:
        tx = self._tx
        until_ms = tx.db.execute("SELECT until_ms FROM dedup WHERE queue = ? AND id = ?", (queue, dedup.id)).fetchone()[
            0
        ]
        ((_, _, _, tenant, *_),) = forget(tx, [owner_key], remember_ids=True)
        tx.tell(queue, Event(EventKind.REMOVED, owner_id, tx.now_ms, tenant, prev="delayed"))
        added = self._own(queue, key, job, dedup, AddOutcome.REPLACED)
        if not dedup.extend:
            tx.db.execute("UPDATE dedup SET until_ms = ? WHERE queue = ? AND id = ?", (until_ms, queue, dedup.id))
        tx.tell(
            queue,
            Event(EventKind.DEDUPLICATED, added.id, tx.now_ms, job.spec.tenant, other_job_id=owner_id),
        )
        return added

    def _deduplicated(self, queue: int, key: int, job: NewJob, owner_id: str, outcome: AddOutcome) -> Added:
        dropped = job.id or str(key)
        self._tx.tell(
            queue, Event(EventKind.DEDUPLICATED, owner_id, self._tx.now_ms, job.spec.tenant, other_job_id=dropped)
        )
        return Added(owner_id, outcome)


def release_dedup(tx: Transaction, queue: int, dedup_id: str, owner: int) -> None:
    """The owner has ended: free its subject, or add the job that was kept for this moment."""
    row = tx.db.execute(
        "SELECT owner, until_ms, next FROM dedup WHERE queue = ? AND id = ?", (queue, dedup_id)
    ).fetchone()
    if row is None or row[0] != owner:
        return
    _, until_ms, kept = row
    if kept is None and until_ms is not None:
        return  # a throttle goes on for its time, whatever became of the job
    tx.db.execute("DELETE FROM dedup WHERE queue = ? AND id = ?", (queue, dedup_id))
    if kept is not None:
        add(tx, [decode_new_job(kept)])


def keep_if_special(spec: JobSpec) -> bytes | None:
    """The job's own retention; most have the default, which need not be stored on the row."""
    if spec.keep_completed == KEEP_COMPLETED and spec.keep_failed == KEEP_ALL:
        return None
    return _encode((spec.keep_completed, spec.keep_failed))
