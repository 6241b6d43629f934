"""What trees of new jobs have beyond the jobs themselves: who belongs to whom, and who cannot."""

from collections.abc import Sequence

import msgspec

from bullpen.errors import WrongState
from bullpen.job.spec import NewJob
from bullpen.job.trees import Node
from bullpen.stores.base import Added
from bullpen.stores.sqlite.family import PENDING, ancestors, forget_outcome
from bullpen.stores.sqlite.transaction import Row, Transaction


class Above(msgspec.Struct, frozen=True):
    """The parent of a new job."""

    key: int
    ref: str
    is_older: bool = False
    """It was there before, and may know of children that are gone."""


class Relations:
    """Gathered as jobs are, and written after them."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._jobs: list[Row] = []
        self._children: list[Row] = []

    def enter(self, queue: int, key: int, job: NewJob, above: Above | None) -> None:
        parent, ref = (None, None) if above is None else (above.key, above.ref)
        delay_ms = job.spec.delay_ms if job.children and job.spec.delay_ms else None
        self._jobs.append((key, parent, ref, bool(job.children), delay_ms))
        if above is not None and above.is_older and job.id is not None:
            forget_outcome(self._tx, above.key, queue, job.id)
        if above is not None:
            self._children.append((above.key, key, queue, job.id or str(key), PENDING, job.spec.on_failure))

    def write(self) -> None:
        if self._jobs:
            self._tx.execute_rows(
                "UPDATE job SET parent = new.column2, parent_ref = new.column3, has_children = new.column4,"
                " delay_ms = new.column5 FROM (VALUES",
                ") AS new WHERE job.key = new.column1",
                self._jobs,
            )
        if self._children:
            self._tx.execute_rows(
                "INSERT INTO child(parent, child, queue, id, state, policy) VALUES", "", self._children
            )
        self._jobs, self._children = [], []


def check_free(tx: Transaction, nodes: Sequence[Node], head: int | None) -> None:
    """WrongState for a child that another job has already, or that `head` descends from."""
    above_head = ancestors(tx, head) if head is not None else set()
    closed: set[int] = set()
    for n, node in enumerate(nodes):
        if node.parent in closed:
            closed.add(n)
            continue
        taken = _taken(tx, node.job)
        if taken is None:
            continue
        closed.add(n)
        key, parent, is_a_child = taken
        is_ours = node.parent is None and parent == head
        becomes_child = node.parent is not None or head is not None
        if key in above_head or (becomes_child and is_a_child and not is_ours):
            raise WrongState(
                f"job {node.job.id!r} of queue {node.job.queue!r} has another parent, or is one of this one's ancestors"
            )


def _taken(tx: Transaction, job: NewJob) -> Row | None:
    """Key, parent, and whether that has it as a child, of the job with this id; or of an id that is only remembered."""
    queue = tx.queue_number_if_known(job.queue)
    if job.id is None or not queue:
        return None
    row: Row | None = tx.db.execute(
        "SELECT key, parent, EXISTS(SELECT 1 FROM child WHERE child.parent = job.parent AND child = job.key) FROM job"
        " WHERE queue = ?1 AND own_id = ?2"
        " UNION ALL SELECT NULL, NULL, 0 FROM id_memory WHERE queue = ?1 AND id = ?2 AND until_ms > ?3",
        (queue, job.id, tx.now_ms),
    ).fetchone()
    return row


def gather_added(nodes: Sequence[Node], added: Sequence[Added | None]) -> list[Added]:
    """The answers of the roots, each with those of its children."""
    below: dict[int | None, list[Added]] = {}
    # Children stand behind their parents, so from the end each one's own are known.
    for n in range(len(nodes) - 1, -1, -1):
        answer = added[n]
        if answer is not None:
            whole = msgspec.structs.replace(answer, children=tuple(reversed(below.get(n, []))))
            below.setdefault(nodes[n].parent, []).append(whole)
    return below.get(None, [])[::-1]
