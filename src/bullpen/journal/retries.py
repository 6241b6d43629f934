"""How often a step is tried, and how long it waits in between."""

import dataclasses

from bullpen.errors import BadOption
from bullpen.job.checks import check_at_least
from bullpen.job.options import exponential
from bullpen.job.record import Failure, FailureKind
from bullpen.job.spec import Backoff
from bullpen.scheduling.backoff import delay_ms


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepRetry:
    """A step's own attempts, apart from those of its job."""

    attempts: int = 3
    """First try and retries together."""
    backoff: Backoff = exponential(1)
    """As for jobs. For up to five seconds the job keeps its slot; for longer it parks."""

    def __post_init__(self) -> None:
        check_at_least("retry: attempts", self.attempts, 1)
        if not isinstance(self.backoff, Backoff):
            raise BadOption(f"retry: backoff is made by fixed() or exponential(), not {self.backoff!r}")

    def delay_ms(self, attempts_made: int, failure: Failure) -> int | None:
        """Before the next attempt; None if there is none."""
        if attempts_made >= self.attempts or failure.kind == FailureKind.UNRECOVERABLE:
            return None
        return delay_ms(self.backoff, attempts_made, failure)


ONCE = StepRetry(attempts=1)


def as_retry(given: StepRetry | int | None) -> StepRetry | None:
    if given is None or isinstance(given, StepRetry):
        return given
    return StepRetry(attempts=given)
