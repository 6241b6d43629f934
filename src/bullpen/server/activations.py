"""The activations of a job, put together from its record and from what the event log still tells.

    active ─▶ completed | failed                          ended for good
           ─▶ stalled                                     lost its worker
           ─▶ delayed | waiting                           failed and tried again, or set aside

The log does not tell the last two apart. The record does: it counts the attempts that were used. If
all that could be a failed attempt must be one, or none can be, that is said; else it is unknown.
"""

from collections.abc import Sequence

import msgspec

from bullpen.job.events import Event, EventKind
from bullpen.job.record import Failure, FailureKind, JobRecord
from bullpen.job.state import FINISHED, State
from bullpen.server.models.timeline import Activation, ActivationOutcome, Moment

_ENDS = {
    EventKind.COMPLETED: ActivationOutcome.COMPLETED,
    EventKind.FAILED: ActivationOutcome.FAILED,
    EventKind.STALLED: ActivationOutcome.LOST,
    EventKind.WAITING_CHILDREN: ActivationOutcome.WAITING_CHILDREN,
    EventKind.DELAYED: ActivationOutcome.UNKNOWN,
    EventKind.WAITING: ActivationOutcome.UNKNOWN,
}
_USES_NO_ATTEMPT = frozenset(
    {FailureKind.STALLED, FailureKind.CANCELLED, FailureKind.EXPIRED, FailureKind.CHILD_FAILED}
)
_MAY_USE_ONE = frozenset({FailureKind.CANCELLED, FailureKind.CHILD_FAILED})
"""An attempt, if it ran when that came; none, if it waited."""
_FAILING = frozenset({ActivationOutcome.RETRIED, ActivationOutcome.FAILED})


class Life(msgspec.Struct, frozen=True):
    """What is known of a job's life."""

    moments: list[Moment]
    activations: list[Activation]
    forgotten: int
    """How many activations there were of which nothing is left."""


def life_of(job: JobRecord, events: Sequence[Event]) -> Life:
    """`events` are those of this job in order, from its adding on or from where the log begins."""
    told = _with_record(job, events)
    number = max(0, job.epoch - sum(event.kind is EventKind.ACTIVE for event in told))
    story = _Story(forgotten=number)
    for event in told:
        story.tell(event)
    story.end(job)
    _give_stacks(job, story.activations, is_whole=story.forgotten == 0)
    if story.activations and story.activations[-1].number == job.epoch:
        story.activations[-1].worker = job.worker
    return Life(story.moments, story.activations, story.forgotten)


def _with_record(job: JobRecord, events: Sequence[Event]) -> list[Event]:
    """What the log has lost of the job's beginning and of its newest activation, the record still has."""
    told = list(events)
    if not any(event.kind is EventKind.ACTIVE for event in told) and job.started_ms is not None:
        told.insert(0, Event(EventKind.ACTIVE, job.id, job.started_ms))
    if not told or told[0].kind is not EventKind.ADDED:
        told.insert(0, Event(EventKind.ADDED, job.id, job.added_ms))
    is_ended = any(event.kind in (EventKind.COMPLETED, EventKind.FAILED) for event in told[_newest_start(told) :])
    if job.state in FINISHED and job.finished_ms is not None and not is_ended:
        failure = job.failure if job.state is State.FAILED else None
        told.append(Event(EventKind(job.state.value), job.id, job.finished_ms, failure=failure))
    return told


def _newest_start(told: Sequence[Event]) -> int:
    return max((at for at, event in enumerate(told) if event.kind is EventKind.ACTIVE), default=0)


class _Story:
    """Goes through events in order; a retry by hand begins a new series of attempts."""

    def __init__(self, *, forgotten: int) -> None:
        self.forgotten = forgotten
        self.moments: list[Moment] = []
        self.activations: list[Activation] = []
        self._open: Activation | None = None
        self._series: list[Activation] = []
        self._unseen = forgotten
        """Of this series; all that is forgotten came before the first event, so in its first one."""

    def tell(self, event: Event) -> None:
        ended = self._open
        if event.kind is EventKind.ACTIVE:
            self._begin(event)
        elif ended is not None and event.kind in _ENDS:
            self._close(ended, event)
        elif event.kind in (EventKind.WAITING, EventKind.WAITING_CHILDREN) and event.prev in FINISHED:
            self._begin_series(event)
        elif event.kind is EventKind.RETRIES_EXHAUSTED:
            self._judge((event.count or 1) - 1)
        elif event.kind is not EventKind.WAITING:
            self._note(event)

    def end(self, job: JobRecord) -> None:
        """The record has the last word on the newest series, and on what is to come."""
        if self._open is not None and job.state is not State.ACTIVE:
            self._open.outcome = ActivationOutcome.UNKNOWN
        kind = job.failure.kind if job.failure is not None and job.state is State.FAILED else None
        if kind not in _MAY_USE_ONE:
            self._judge(job.attempts_made - (job.state in FINISHED and kind not in _USES_NO_ATTEMPT))
        retried = [one for one in self._series if one.outcome is ActivationOutcome.RETRIED]
        if retried and job.failure is not None and job.state is not State.FAILED:
            _give_error(retried[-1], job.failure)
        if job.run_at_ms is not None and job.state is State.DELAYED:
            self.moments.append(Moment(at_ms=job.run_at_ms, kind="due", detail=job.note))

    def _begin(self, event: Event) -> None:
        number = self.forgotten + len(self.activations) + 1
        self._open = Activation(number=number, started_ms=event.at_ms, outcome=ActivationOutcome.RUNNING)
        self.activations.append(self._open)
        self._series.append(self._open)
        self._note(event, number)

    def _close(self, ended: Activation, event: Event) -> None:
        ended.ended_ms = event.at_ms
        ended.outcome = _ENDS[event.kind]
        ended.next_ms = event.run_at_ms
        if event.kind is EventKind.STALLED:
            ended.crash = event.name
        if event.failure is not None:
            _give_error(ended, event.failure)
        self._open = None
        self._note(event, ended.number)

    def _begin_series(self, event: Event) -> None:
        self._series, self._unseen = [], 0
        self.moments.append(Moment(at_ms=event.at_ms, kind="retried", detail=f"from {event.prev}"))

    def _judge(self, retries: int) -> None:
        """Of this series so many attempts failed and were followed by another: which ones, if that is certain."""
        unclear = [one for one in self._series if one.outcome is ActivationOutcome.UNKNOWN and one.ended_ms is not None]
        if retries == 0:
            outcome = ActivationOutcome.SET_ASIDE
        elif retries == len(unclear) + self._unseen:
            outcome = ActivationOutcome.RETRIED
        else:
            return
        for one in unclear:
            one.outcome = outcome

    def _note(self, event: Event, number: int | None = None) -> None:
        detail = event.failure.message if event.failure is not None else None
        if event.kind is EventKind.STALLED:
            detail = event.name
        self.moments.append(Moment(at_ms=event.at_ms, kind=event.kind.value, detail=detail, activation=number))


def _give_error(activation: Activation, failure: Failure) -> None:
    activation.error, activation.error_kind = failure.message, failure.kind.value


def _give_stacks(job: JobRecord, activations: Sequence[Activation], *, is_whole: bool) -> None:
    """A failure adds a stack, if it has one, and the newest few are kept: where the numbers fit, each has its own."""
    failing = [one for one in activations if one.outcome in _FAILING and one.error_kind not in _USES_NO_ATTEMPT]
    is_clear = all(one.outcome is not ActivationOutcome.UNKNOWN or one.ended_ms is None for one in activations)
    kept = min(len(failing), job.spec.keep_stacks)
    if not is_clear or (len(job.stacks) != kept if is_whole else len(job.stacks) < kept):
        return
    for one, stack in zip(failing[::-1], job.stacks[::-1], strict=False):
        one.stack = stack
        one.error = one.error or _error_in(stack)


def _error_in(stack: str) -> str | None:
    """Python tells the error last, JavaScript first."""
    lines = [line.strip() for line in stack.splitlines() if line.strip()]
    if not lines:
        return None
    return lines[-1] if lines[0].startswith(("Traceback", "+ Exception Group", "File ")) else lines[0]
