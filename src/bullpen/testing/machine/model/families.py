"""Parents and children: who waits for whom, and what a parent knows of each child."""

import dataclasses
from typing import Any

from bullpen.job.record import Failure, FailureKind, JobRef
from bullpen.job.spec import OnFailure
from bullpen.job.state import FINISHED, State
from bullpen.stores.base import ChildState
from bullpen.testing.machine.model.jobs import Jobs, ModelJob


@dataclasses.dataclass
class Bond:
    """What a parent knows of one child."""

    policy: OnFailure | None
    state: ChildState = ChildState.PENDING
    result: bytes | None = None


class Families(Jobs):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.bonds: dict[ModelJob, dict[ModelJob, Bond]] = {}
        """By parent and child; a child that is gone stays known."""

    def children(self, ref: JobRef) -> set[tuple[JobRef, ChildState, bytes | None]]:
        """Each with its result, if it has one."""
        return {(child.ref, bond.state, bond.result) for child, bond in self.bonds.get(self._job(ref), {}).items()}

    def _parent(self, job: ModelJob) -> ModelJob | None:
        """The parent, if it is there and still the one that took this job for its child."""
        parent = self.jobs.get(job.record.parent) if job.record.parent is not None else None
        return parent if parent is not None and job in self.bonds.get(parent, {}) else None

    def _has_pending(self, job: ModelJob) -> bool:
        return any(bond.state == ChildState.PENDING for bond in self.bonds.get(job, {}).values())

    def _bind(self, parent: ModelJob, child: ModelJob, policy: OnFailure | None) -> None:
        bond = Bond(policy)
        if child.state == State.COMPLETED:
            bond = Bond(policy, ChildState.COMPLETED, child.record.result)
        known = self.bonds.get(parent, {})
        # A child that is gone, and whose id another one has by now, gives way to it.
        self.bonds[parent] = {other: old for other, old in known.items() if other.ref != child.ref} | {child: bond}
        child.change(parent=parent.ref)

    # ── what becomes of a child ──────────────────────────────────────────────────────────

    def _child_ended(self, child: ModelJob) -> None:
        parent, bond = self._pending(child)
        if parent is None or bond is None:
            return
        if child.state == State.COMPLETED:
            bond.state, bond.result = ChildState.COMPLETED, child.record.result
            self._release_if_ready(parent)
        elif bond.policy == OnFailure.FAIL_PARENT:
            bond.state = ChildState.FAILED
            self._doom(parent)
        elif bond.policy == OnFailure.CONTINUE_PARENT:
            bond.state = ChildState.IGNORED
            self._release(parent)
        elif bond.policy == OnFailure.IGNORE:
            bond.state = ChildState.IGNORED
            self._release_if_ready(parent)
        elif bond.policy == OnFailure.REMOVE:
            self._child_gone(child)

    def _child_gone(self, child: ModelJob, *, not_in: str | None = None) -> None:
        parent, _ = self._pending(child)
        if parent is None:
            return
        del self.bonds[parent][child]
        if parent.ref.queue != not_in:
            self._release_if_ready(parent)

    def _child_back(self, child: ModelJob) -> None:
        parent = self._parent(child)
        if parent is not None:
            self.bonds[parent][child] = Bond(self.bonds[parent][child].policy)

    def _pending(self, child: ModelJob) -> tuple[ModelJob | None, Bond | None]:
        parent = self._parent(child)
        bond = self.bonds[parent][child] if parent is not None else None
        return (parent, bond) if bond is not None and bond.state == ChildState.PENDING else (None, None)

    # ── what becomes of a parent ─────────────────────────────────────────────────────────

    def _release_if_ready(self, parent: ModelJob) -> None:
        if not self._has_pending(parent):
            self._release(parent)

    def _release(self, parent: ModelJob) -> None:
        if parent.state != State.WAITING_CHILDREN:
            return
        if parent.delay_ms:
            self._delay(parent, parent.delay_ms)
        else:
            self._to_line(parent, head=parent.record.priority == 0)
        parent.delay_ms = 0

    def _doom(self, parent: ModelJob) -> None:
        if parent.state in FINISHED:
            return
        parent.change(doomed=Failure("", FailureKind.CHILD_FAILED))
        if parent.state in (State.WAITING_CHILDREN, State.DELAYED):
            parent.delay_ms = 0
            self._to_line(parent, head=parent.record.priority == 0)

    def _await_children(self, job: ModelJob) -> None:
        """Until none is pending; at the head of its line if none is."""
        if self._has_pending(job):
            self._move(job, State.WAITING_CHILDREN)
        else:
            self._to_line(job, head=True)

    # ── families as a whole ──────────────────────────────────────────────────────────────

    def _family(self, job: ModelJob) -> list[ModelJob]:
        """The job and all below it that are there."""
        found = [job]
        for member in found:
            found += [child for child in self.bonds.get(member, {}) if self._is_child(child, member)]
        return found

    def _is_child(self, child: ModelJob, parent: ModelJob) -> bool:
        return self.jobs.get(child.ref) is child and child.record.parent == parent.ref

    def _ancestors(self, job: ModelJob) -> list[ModelJob]:
        """The job and all above it."""
        found = [job]
        while (parent := self._parent(found[-1])) is not None:
            found.append(parent)
        return found
