"""How a program that must wait leaves its handler."""

from collections.abc import Iterable

from bullpen.job.verdicts import Parked


class Suspension(BaseException):
    """Raised where a program sleeps, waits, or cannot go on; the job's next activation comes back to that place.

    Not an Exception: code that catches errors must not take it for one. `finally` blocks run.
    """

    def __init__(self, verdict: Parked | None) -> None:
        super().__init__(verdict.note if verdict is not None else "another activation has begun")
        self.verdict = verdict
        """None: another answers for the job."""


def merged(verdicts: Iterable[Parked]) -> Parked:
    """Until the first of their times, or any of their signals."""
    all_of = tuple(verdicts)
    times = [verdict.until_ms for verdict in all_of if verdict.until_ms is not None]
    signals = dict.fromkeys(name for verdict in all_of for name in verdict.signals)
    notes = dict.fromkeys(verdict.note for verdict in all_of if verdict.note)
    return Parked(min(times, default=None), tuple(signals), "; ".join(notes))


def found_in(group: BaseExceptionGroup[BaseException]) -> list[Suspension]:
    """Those that came through a task group."""
    matched, _ = group.split(Suspension)
    return [] if matched is None else list(_leaves(matched))


def _leaves(group: BaseExceptionGroup[Suspension]) -> Iterable[Suspension]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
