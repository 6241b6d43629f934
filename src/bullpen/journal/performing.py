"""One step at work: called until it is done, as often as it may fail, and put on record.

on record? ──yes──▶ what is there, nothing is called
   │ no
   ▼
called ──▶ recorded          (again, in this activation or a later one, if it raised)
"""

import asyncio
import contextlib
import contextvars
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from bullpen.errors import BadData, BadStep, JobCancelled, Postpone, StepFailed
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.record import Failure, FailureKind
from bullpen.job.verdicts import Parked
from bullpen.journal.program import Program
from bullpen.journal.retries import StepRetry
from bullpen.observing import StepAtWork

Caller = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a plain function somewhere else than on the event loop."""

_current_key: contextvars.ContextVar[str | None] = contextvars.ContextVar("bullpen_step_key", default=None)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What one place is to do."""

    place: int
    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kind: EntryKind = EntryKind.STEP
    retry: StepRetry | None = None
    """None: the job's own attempts are what there is, and a failure is not put on record."""
    timeout_ms: int | None = None


class Performer:
    def __init__(self, program: Program, caller: Caller) -> None:
        self.program = program
        self._caller = caller

    async def perform(self, work: Work) -> JournalEntry:
        """Do this if it is not done, as often as it may fail; the entry that is on record then."""
        entry = await self.program.find(work.place, work.name, work.kind)
        if entry is not None and entry.state == EntryState.DONE:
            return entry
        if entry is not None and entry.state == EntryState.FAILED and self.program.has_followers(entry):
            raise _as_error(entry)
        attempts = 0
        if entry is not None and entry.state == EntryState.OPEN and entry.until_ms is not None:
            attempts = entry.attempts
            self.wait_until(entry.until_ms, f"{entry.kind} {entry.name!r} is tried again")
        while True:
            attempts += 1
            begun = JournalEntry(
                work.place, work.name, work.kind, attempts=attempts, started_ms=self.program.now_ms()
            )  # fmt: skip
            try:
                value = self.program.encode(await self._call_once(work, attempts), f"result of step {work.name!r}")
            except (Postpone, JobCancelled):
                raise  # meant for the job, not for the step
            except Exception as error:
                if work.retry is None:
                    raise
                await self._after_failure(work, begun, error)
            else:
                ended_ms = self.program.now_ms()
                return await self.program.record(msgspec.structs.replace(begun, value=value, ended_ms=ended_ms))

    async def _after_failure(self, work: Work, begun: JournalEntry, error: Exception) -> None:
        """Wait for the next attempt, here or parked; or put the failure on record for good."""
        assert work.retry is not None
        program = self.program
        failure = program.describe(error)
        now_ms = program.now_ms()
        failed = msgspec.structs.replace(begun, state=EntryState.FAILED, failure=failure, ended_ms=now_ms)
        delay_ms = work.retry.delay_ms(begun.attempts, failure)
        if delay_ms is None:
            await self.give_up(failed, error)
        elif delay_ms <= program.terms.in_place_ms:
            await asyncio.sleep(delay_ms / 1000)
        else:
            until_ms = now_ms + delay_ms
            await program.record(msgspec.structs.replace(failed, state=EntryState.OPEN, until_ms=until_ms))
            self.wait_until(until_ms, f"{work.kind} {work.name!r} is tried again: {failure.message}")

    async def give_up(self, failed: JournalEntry, error: Exception) -> None:
        if failed.kind == EntryKind.UNDO:
            # Half undone is no end: someone must mend it and let the job go on.
            await self.program.record(msgspec.structs.replace(failed, state=EntryState.OPEN))
            message = failed.failure.message if failed.failure else ""
            self.program.suspend(Parked(None, (), f"undo of {failed.name!r} failed as often as it may: {message}"))
            return
        raise _as_error(await self.program.record(failed)) from error

    async def _call_once(self, work: Work, attempt: int) -> Any:
        observers = self.program.terms.observers
        if not observers:
            return await self._call(work)
        with observers.stepping(StepAtWork(work.name, work.kind, attempt)):
            return await self._call(work)

    async def _call(self, work: Work) -> Any:
        token = _current_key.set(self.program.key_of(work.place))
        try:
            async with _limited(work):
                if inspect.iscoroutinefunction(work.function):
                    return await work.function(*work.args)
                value = await self._caller(functools.partial(work.function, *work.args))
                # A lambda that calls a coroutine function gives what is still to be awaited.
                return await value if inspect.isawaitable(value) else value
        finally:
            _current_key.reset(token)

    def wait_until(self, until_ms: int, note: str) -> None:
        while self.program.now_ms() < until_ms:
            self.program.suspend(Parked(until_ms, (), note))


def current_key() -> str:
    """The key of the step that is at work here."""
    key = _current_key.get()
    if key is None:
        raise BadStep("there is a step key only while a step is at work")
    return key


def is_inside_step() -> bool:
    return _current_key.get() is not None


def check_can_ask() -> None:
    if is_inside_step():
        raise BadStep("a step cannot ask for steps: what it did would not be asked for again once it is on record")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise BadStep("a plain function asks for steps by ctx.sync.step(…)") from None


def as_type(value: Any, returns: type[Any] | None, name: str) -> Any:
    if returns is None:
        return value
    try:
        return msgspec.convert(value, returns)
    except msgspec.ValidationError as error:
        raise BadData(f"result of step {name!r} is no {returns.__name__}: {error}") from error


@contextlib.asynccontextmanager
async def _limited(work: Work) -> AsyncIterator[None]:
    seconds = None if work.timeout_ms is None else work.timeout_ms / 1000
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeoutError(f"step {work.name!r} took longer than {seconds:g} s") from error


def _as_error(entry: JournalEntry) -> StepFailed:
    failure = entry.failure or Failure("failed", FailureKind.ERROR)
    times = f"{entry.attempts} times" if entry.attempts > 1 else "once"
    return StepFailed(f"step {entry.name!r} was tried {times}: {failure.message}", entry.name, failure)
