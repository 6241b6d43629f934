"""About a place where foreign code runs."""

from bullpen.errors.agents import AgentError


class SandboxError(AgentError):
    """About a sandbox, in which code runs that nobody vouches for."""

    code = "sandbox"
    agent_code = "E005"
    safe_message = "The place where the task's code runs has failed. Please try again."


class SandboxTimeout(SandboxError, TimeoutError):
    """No sandbox was to be had in time; the same call may succeed later."""

    code = "sandbox-timeout"
    agent_code = "E004"


class SandboxBroken(SandboxError):
    """The sandbox ended, or no longer answers; what was in its workspace is gone. A new one may do."""

    code = "sandbox-broken"


class SandboxUnavailable(SandboxError):
    """This machine, or the service that was named, gives no sandbox of this kind."""

    code = "sandbox-unavailable"
    retryable = False


class IsolationTooWeak(SandboxError):
    """A tool asks for stronger walls than the sandbox has; it was not run."""

    code = "isolation-too-weak"
    retryable = False


class SandboxRefused(SandboxError):
    """A file of the workspace cannot be read or written as asked; ``kind`` says why."""

    code = "sandbox-refused"
    retryable = False

    def __init__(self, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.kind = kind
