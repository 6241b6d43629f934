"""Which failed jobs are meant."""

from dataclasses import dataclass

from bullpen.deadletters.fingerprint import fingerprint_of
from bullpen.errors import BadOption
from bullpen.job.names import check_queue_name
from bullpen.job.record import FailureKind, JobRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadFilter:
    """Failed jobs for which all of this is true; what is not given is not asked."""

    queue: str | None = None
    name: str | None = None
    """The job's name."""
    tenant: str | None = None
    workspace: str | None = None
    """Of whatever tenant, if none is given."""
    tag: str | None = None
    error: str | None = None
    """A part of the failure's message, or the exact type of the exception."""
    kind: FailureKind | str | None = None
    since_ms: int | None = None
    """Failed at this wall time or later."""
    until_ms: int | None = None
    """Failed before this wall time."""
    fingerprint: str | None = None
    """Of the group that the job belongs to."""

    def __post_init__(self) -> None:
        if self.queue is not None:
            check_queue_name(self.queue)
        for option in ("name", "tenant", "workspace", "tag", "error", "fingerprint"):
            value = getattr(self, option)
            if value is not None and (not isinstance(value, str) or not value):
                raise BadOption(f"{option}: a text that is not empty, not {value!r}")
        for option in ("since_ms", "until_ms"):
            value = getattr(self, option)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise BadOption(f"{option}: wall time in whole milliseconds, not {value!r}")
        if self.kind is not None and self.kind not in tuple(FailureKind):
            raise BadOption(f"kind: one of {', '.join(FailureKind)}, not {self.kind!r}")

    def matches(self, job: JobRecord) -> bool:
        """Whether this failed job is meant; the dear question last."""
        return (
            (self.queue is None or job.queue == self.queue)
            and (self.name is None or job.name == self.name)
            and (self.tenant is None or job.tenant == self.tenant)
            and (self.workspace is None or job.spec.workspace == self.workspace)
            and (self.tag is None or self.tag in job.spec.tags)
            and (self.kind is None or (job.failure is not None and job.failure.kind == self.kind))
            and self._is_in_time(job.finished_ms or 0)
            and self._has_error(job)
            and (self.fingerprint is None or fingerprint_of(job) == self.fingerprint)
        )

    def _is_in_time(self, failed_ms: int) -> bool:
        return (self.since_ms is None or failed_ms >= self.since_ms) and (
            self.until_ms is None or failed_ms < self.until_ms
        )

    def _has_error(self, job: JobRecord) -> bool:
        if self.error is None:
            return True
        failure = job.failure
        return failure is not None and (self.error in failure.message or self.error == failure.type)
