"""What runs around handlers: hooks that look on, middleware that may step in."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from bullpen.job.record import Failure, JobRef
from bullpen.job.verdicts import Completed, Failed, Retry, Verdict
from bullpen.queue.payload import Codec, from_bytes
from bullpen.worker.context import Context

logger = logging.getLogger("bullpen.jobs")
alert_log = logging.getLogger("bullpen.alerts")

Middleware = Callable[[Context, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""`async def around(ctx, call): … return await call()`: may look at, replace or refuse."""


class Hooks(msgspec.Struct, frozen=True):
    """Called as a job of this type goes on; plain or async. What one raises is logged and changes nothing."""

    on_start: Callable[[Context], Any] | None = None
    on_progress: Callable[[Context, Any], Any] | None = None
    on_complete: Callable[[Context, Any], Any] | None = None
    """With the result."""
    on_failed: Callable[[Context, Failure], Any] | None = None
    """After each failed attempt."""
    on_final_failure: Callable[[Context, Failure], Any] | None = None
    """After the last."""


class Severity(StrEnum):
    """How bad a final failure is: high for types that are declared critical."""

    WARNING = "warning"
    HIGH = "high"


class Alert(msgspec.Struct, frozen=True):
    """A job failed for good."""

    severity: Severity
    ref: JobRef
    name: str
    tenant: str | None
    failure: Failure


class AlertHook(Protocol):
    def __call__(self, alert: Alert, /) -> Any: ...


async def call_hook(hook: Callable[..., Any] | None, *arguments: Any) -> None:
    """Call a hook if there is one; its failure is its own."""
    if hook is None:
        return
    try:
        answer = hook(*arguments)
        if inspect.isawaitable(answer):
            await answer
    except Exception:
        logger.exception("a hook failed; its job is not affected")


async def tell_verdict(hooks: Hooks, context: Context, verdict: Verdict, codec: Codec | None = None) -> None:
    """Call the hooks that this end of an attempt is for."""
    match verdict:
        case Completed(result):
            if hooks.on_complete is not None:
                await call_hook(hooks.on_complete, context, from_bytes(result, what="result", codec=codec))
        case Retry(failure) | Failed(failure):
            await call_hook(hooks.on_failed, context, failure)
            if isinstance(verdict, Failed):
                await call_hook(hooks.on_final_failure, context, failure)
        case _:
            pass


async def raise_alert(hooks: Sequence[AlertHook], alert: Alert) -> None:
    """Tell everyone who asked; and the log, in any case."""
    level = logging.ERROR if alert.severity == Severity.HIGH else logging.WARNING
    alert_log.log(level, "%s of %s failed for good: %s", alert.name, alert.ref, alert.failure.message)
    for hook in hooks:
        await call_hook(hook, alert)
