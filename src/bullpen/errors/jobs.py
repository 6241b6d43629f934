"""About one job, or one queue of jobs."""

from typing import ClassVar

from bullpen.errors.root import BullpenError


class JobError(BullpenError):
    """About one job, or one queue of jobs."""

    code = "job"


class JobMissing(JobError):
    """No job with this id: never added, removed, or pruned by retention."""

    code = "job-missing"


class QueueMissing(JobError):
    """Nothing was ever added to a queue of this name."""

    code = "queue-missing"


class ScheduleMissing(JobError):
    """No schedule of this name in the queue: never made, or removed."""

    code = "schedule-missing"


class WrongState(JobError):
    """The job or queue is not in a state that allows this."""

    code = "wrong-state"


class JobFailed(JobError):
    """The awaited job ended in the failed state; ``failure`` says how."""

    code = "job-failed"

    def __init__(self, message: str, failure: object = None) -> None:
        super().__init__(message)
        self.failure = failure


class ResultTimeout(JobError, TimeoutError):
    """The awaited job did not end in time; it goes on."""

    code = "result-timeout"


class CodecMissing(JobError):
    """The payload was written with a codec that this process was not given."""

    code = "codec-missing"


class MoveRefused(JobError):
    """The queue cannot be moved there, or no further; no job was lost by that."""

    code = "move-refused"


class GroupFull(JobError):
    """As many jobs wait in the group as may; nothing of the batch was added."""

    code = "group-full"


class TenantRefused(JobError):
    """A job's tenant is not one that the worker may work for; the job fails for good."""

    code = "tenant-refused"
    retryable: ClassVar[bool] = False


class LeaseLost(JobError):
    """Another activation of this job has begun, or it ended: what this one does no longer counts."""

    code = "lease-lost"


class JournalFull(JobError):
    """The job has recorded as many steps, or as much, as it may; split it into several jobs."""

    code = "journal-full"
    retryable: ClassVar[bool] = False


class MailboxFull(JobError):
    """As many signals wait for this job as it may have; it does not take them."""

    code = "mailbox-full"


class StepFailed(JobError):
    """A step failed as often as it may; ``step`` is its name, ``failure`` says how.

    It is on record: the same step fails in the same way when the program runs again.
    """

    code = "step-failed"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, step: str = "", failure: object = None) -> None:
        super().__init__(message)
        self.step = step
        self.failure = failure


class SagaFailed(StepFailed):
    """A saga failed and everything that it did was undone; ``failure`` says what it failed of."""

    code = "saga-failed"


class WaitTimeout(JobError, TimeoutError):
    """The awaited signal did not come in time."""

    code = "wait-timeout"
    retryable: ClassVar[bool] = False
