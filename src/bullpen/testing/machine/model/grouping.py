"""Groups: which of them may give a job, and whose turn it is."""

from collections.abc import Iterator, Sequence

from bullpen.errors import GroupFull
from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.job.state import READY, State
from bullpen.testing.machine.model.ending import Ending
from bullpen.testing.machine.model.jobs import ModelJob
from bullpen.testing.machine.model.limits import ModelGroup, ModelLimits


class Grouping(Ending):
    # ── looking ──────────────────────────────────────────────────────────────────────────

    def in_group(self, queue: str, group: str, *states: State) -> list[ModelJob]:
        return [job for job in self.line(queue, *states) if job.record.spec.group == group]

    def groups(self, queue: str, *, limit: int) -> GroupPage:
        self._check_queue(queue)
        ring = self.ring(queue)
        infos = [self._info(queue, name) for name in sorted(ring.groups)]
        shown = [one for one in infos if one.waiting or one.active or one.paused or one.limits != GroupLimits()]
        return GroupPage(tuple(shown[:limit]), ring.default, None)

    def _info(self, queue: str, name: str) -> GroupInfo:
        ring = self.ring(queue)
        group, waiting = ring.group(name), self.in_group(queue, name, *READY)
        return GroupInfo(
            name=name,
            waiting=len(waiting),
            active=len(self.in_group(queue, name, State.ACTIVE)),
            paused=group.paused,
            closed_until_ms=self._closed_until(queue, name),
            oldest_ms=waiting[0].since_ms if waiting else None,
            limits=group.limits,
        )

    def _closed_until(self, queue: str, name: str) -> int | None:
        ring = self.ring(queue)
        return ring.group(name).window.closed_until(ring.limits_of(name).rate_max, self.now_ms)

    # ── steering ─────────────────────────────────────────────────────────────────────────

    def set_limits(self, queue: str, limits: QueueLimits) -> None:
        self.queues.add(queue)
        known = self.limits.setdefault(queue, ModelLimits())
        known.said = limits
        known.window.begin_anew()

    def queue_standing(self, queue: str) -> QueueStanding:
        self._check_queue(queue)
        known = self.limits.get(queue, ModelLimits())
        return QueueStanding(known.said, known.window.closed_until(known.said.rate_max, self.now_ms))

    def set_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        self.queues.add(queue)
        known = self.ring(queue).group(group)
        known.limits = limits or GroupLimits()
        known.window.begin_anew()

    def set_group_default(self, queue: str, limits: GroupLimits) -> None:
        self.queues.add(queue)
        self.ring(queue).default = limits

    def pause_group(self, queue: str, group: str) -> None:
        self.queues.add(queue)
        self.ring(queue).group(group).paused = True

    def resume_group(self, queue: str, group: str) -> None:
        self._check_queue(queue)
        self.ring(queue).group(group).paused = False

    def close_for(self, job: ModelJob, delay_ms: int, *, group_only: bool) -> None:
        queue, group = job.ref.queue, job.record.spec.group
        if group_only and group is not None:
            window = self.ring(queue).group(group).window
        else:
            window = self.limits.setdefault(queue, ModelLimits()).window
        window.closed_until_ms = max(window.closed_until_ms, self.now_ms + delay_ms)

    # ── sizes ────────────────────────────────────────────────────────────────────────────

    def _check_sizes(self, jobs: Sequence[NewJob]) -> None:
        entering = [job for job in self._entering(jobs) if job.spec.group]
        for queue, group in {(job.queue, job.spec.group or "") for job in entering}:
            most = self.ring(queue).limits_of(group).max_size
            more = self._how_many_enter([job for job in entering if (job.queue, job.spec.group) == (queue, group)])
            waiting = len(self.in_group(queue, group, *READY))
            if most is not None and more and waiting + more > most:
                raise GroupFull(group)

    def _entering(self, jobs: Sequence[NewJob]) -> Iterator[NewJob]:
        """What goes into a line at once: not after a delay or children, nor below a job that is there."""
        for job in jobs:
            ref = JobRef(job.queue, job.id or "")
            if not job.children:
                if not job.spec.delay_ms:
                    yield job
            elif ref not in self.jobs and not self._is_remembered(ref):
                yield from self._entering(job.children)

    def _how_many_enter(self, jobs: Sequence[NewJob]) -> int:
        seen: set[tuple[str, str]] = set()
        more = 0
        for job in jobs:
            dedup = job.spec.dedup
            names = {(kind, name) for kind, name in (("id", job.id), ("subject", dedup and dedup.id)) if name}
            ref = JobRef(job.queue, job.id or "")
            is_known = job.id is not None and (ref in self.jobs or self.remembered.get(ref, 0) > self.now_ms)
            subject = self.subjects.get((job.queue, dedup.id)) if dedup else None
            stands = subject is not None and (subject.until_ms is None or subject.until_ms > self.now_ms)
            if not is_known and not (stands and dedup and not dedup.replace) and seen.isdisjoint(names):
                more += 1
            seen |= names
        return more

    # ── turns ────────────────────────────────────────────────────────────────────────────

    def stand(self, queue: str) -> None:
        """Each group is in the ring or not; it enters at the present time, or at its own where that is later."""
        ring = self.ring(queue)
        grouped = [job for job in self.line(queue, *READY) if job.record.spec.group is not None]
        for job in grouped:
            ring.group(job.record.spec.group or "")
        for name, group in ring.groups.items():
            may_run = self._may_run(queue, name, group)
            if may_run and not group.is_in_ring:
                group.time = max(group.time, ring.present)
            group.is_in_ring = may_run
        if not grouped:
            ring.present = 0.0
            for group in ring.groups.values():
                group.time = 0.0

    def _may_run(self, queue: str, name: str, group: ModelGroup) -> bool:
        cap = self.ring(queue).limits_of(name).concurrency
        is_full = cap is not None and len(self.in_group(queue, name, State.ACTIVE)) >= cap
        is_open = self._closed_until(queue, name) is None
        return bool(self.in_group(queue, name, *READY)) and not group.paused and not is_full and is_open

    def next_in_turn(self, queue: str) -> tuple[str, ModelJob] | None:
        """The group whose turn it is and its first job."""
        self.stand(queue)
        ring = self.ring(queue)
        names = [name for name, group in ring.groups.items() if group.is_in_ring]
        if not names:
            return None
        name = min(names, key=lambda one: (ring.group(one).time, one.encode()))
        return name, self.in_group(queue, name, *READY)[0]

    def count_turn(self, queue: str, name: str) -> None:
        ring = self.ring(queue)
        group, limits = ring.group(name), ring.limits_of(name)
        ring.present = group.time
        group.time += 1 / (limits.weight or 1)
        group.window.count(limits.rate_max, limits.rate_ms, self.now_ms)

    def wakes_ms(self, queue: str) -> list[int]:
        """When groups that have jobs, and are not paused, open again."""
        ring = self.ring(queue)
        waiting = [name for name, one in ring.groups.items() if self.in_group(queue, name, *READY) and not one.paused]
        return [until_ms for name in waiting if (until_ms := self._closed_until(queue, name)) is not None]
