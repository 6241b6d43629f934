"""The caller's mistakes: nothing was changed."""

from typing import ClassVar

from bullpen.errors.root import BullpenError


class UsageError(BullpenError, ValueError):
    """The caller asked for something that cannot be; nothing was changed."""

    code = "usage"
    retryable: ClassVar[bool] = False
    """Raised in a handler it fails the job at once: the same call would be as wrong again."""


class BadName(UsageError):
    """A queue, job or schedule name has characters that are not allowed."""

    code = "bad-name"


class BadId(UsageError):
    """A job id could collide with a generated id or with the store's own keys."""

    code = "bad-id"


class BadOption(UsageError):
    """An option is unknown, out of range or does not fit another."""

    code = "bad-option"


class BadData(UsageError):
    """Data cannot be written as JSON, or is not what its reader expects."""

    code = "bad-data"


class PayloadTooLarge(UsageError):
    """The payload is over the queue's size limit; store it elsewhere and send its id."""

    code = "payload-too-large"


class BadHandler(UsageError):
    """A handler is not callable, or cannot run in the way asked for."""

    code = "bad-handler"


class BadStep(UsageError):
    """A durable step was asked for where or how it cannot be."""

    code = "bad-step"


class AddressRefused(UsageError):
    """The address is one that is not called: of this machine, of a private network, or no address at all."""

    code = "address-refused"
