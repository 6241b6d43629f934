"""Calls between machines: to somebody else's server, and a remote worker's to ours."""

from bullpen.errors.root import BullpenError


class CallFailed(BullpenError):
    """A call over HTTP brought no answer: no such name, no connection, no trust, or no end in time.

    ``retry_after`` is for how many seconds whoever answered wants to be left alone, if they say.
    """

    code = "call-failed"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RemoteRefused(BullpenError):
    """The server does not take the remote worker's token, or not for what it asks; asking again cannot help."""

    code = "remote-refused"
