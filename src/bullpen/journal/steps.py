"""The durable steps of a program: each is done once and then on record.

A place is taken when the program asks, not when it awaits, so that what runs side by side has the
same places in every activation.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import msgspec

from bullpen.errors import BadStep, WaitTimeout
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.names import check_job_name
from bullpen.job.options import Duration, to_ms
from bullpen.job.verdicts import Parked
from bullpen.journal.performing import Caller, Performer, Work, as_type, check_can_ask
from bullpen.journal.program import Program
from bullpen.journal.retries import StepRetry, as_retry
from bullpen.journal.suspension import Suspension, merged

T = TypeVar("T")


class Steps(Performer):
    """What a context offers to a program."""

    def __init__(self, program: Program, caller: Caller = asyncio.to_thread) -> None:
        super().__init__(program, caller)

    def with_caller(self, caller: Caller) -> "Steps":
        """The same steps, whose plain functions are called in another way."""
        return Steps(self.program, caller)

    # ── steps ────────────────────────────────────────────────────────────────────────────

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: type[T],
    ) -> Awaitable[T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: None = None,
    ) -> Awaitable[Any]: ...

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: type[Any] | None = None,
    ) -> Awaitable[Any]:
        """Call this once, whatever happens, and return its result as JSON carries it, now and in later attempts."""
        work = self.prepare(name, function, args, retry=as_retry(retry), timeout=timeout)
        return self._value_of(work, returns)

    def prepare(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        retry: StepRetry | None = None,
        timeout: Duration | None = None,
        kind: EntryKind = EntryKind.STEP,
    ) -> Work:
        """Check a step and take its place."""
        check_can_ask()
        if not callable(function):
            raise BadStep(f"step {name!r}: {function!r} is not callable; give the function, and its arguments after it")
        timeout_ms = None if timeout is None else to_ms("timeout", timeout)
        return Work(
            place=self.program.take_place(), name=check_job_name(name), function=function, args=args, kind=kind,
            retry=retry, timeout_ms=timeout_ms,
        )  # fmt: skip

    async def _value_of(self, work: Work, returns: type[Any] | None) -> Any:
        return as_type(self.program.decode(await self.perform(work)), returns, work.name)

    # ── sleeping and waiting ─────────────────────────────────────────────────────────────

    def sleep(self, duration: Duration, *, name: str = "sleep") -> Awaitable[None]:
        """Park the job for that long."""
        check_can_ask()
        return self._sleep(self.program.take_place(), check_job_name(name), to_ms("sleep", duration))

    async def _sleep(self, place: int, name: str, ms: int) -> None:
        entry = await self.program.find(place, name, EntryKind.SLEEP)
        if entry is None:
            now_ms = self.program.now_ms()
            asleep = JournalEntry(
                place, name, EntryKind.SLEEP, EntryState.OPEN, until_ms=now_ms + ms, started_ms=now_ms
            )  # fmt: skip
            entry = await self.program.record(asleep)
        self.wait_until(entry.until_ms or 0, "sleeps" if name == "sleep" else f"sleeps: {name}")

    def wait_for(self, signal: str, *, timeout: Duration | None = None) -> Awaitable[Any]:
        """Park the job until this signal comes, and return its payload; WaitTimeout if it does not in time."""
        check_can_ask()
        timeout_ms = None if timeout is None else to_ms("timeout", timeout)
        return self._wait_for(self.program.take_place(), check_job_name(signal), timeout_ms)

    async def _wait_for(self, place: int, name: str, timeout_ms: int | None) -> Any:
        program = self.program
        entry = await program.find(place, name, EntryKind.WAIT)
        if entry is not None and entry.state == EntryState.FAILED and program.has_followers(entry):
            raise _as_timeout(entry)
        if entry is None or entry.state != EntryState.DONE:
            entry = await self._receive(place, name, timeout_ms, entry)
        return program.decode(entry)

    async def _receive(self, place: int, name: str, timeout_ms: int | None, entry: JournalEntry | None) -> JournalEntry:
        program = self.program
        since_ms = program.now_ms() if entry is None else entry.started_ms
        received = JournalEntry(place, name, EntryKind.WAIT, started_ms=since_ms)
        while True:
            now_ms = program.now_ms()
            standing = await program.receive(msgspec.structs.replace(received, ended_ms=now_ms))
            if standing is not None:
                return standing
            if entry is None:
                until_ms = None if timeout_ms is None else now_ms + timeout_ms
                waiting = msgspec.structs.replace(received, state=EntryState.OPEN, until_ms=until_ms)
                entry = await program.record(waiting)
            if entry.until_ms is not None and now_ms >= entry.until_ms:
                over = msgspec.structs.replace(entry, state=EntryState.FAILED, ended_ms=now_ms)
                raise _as_timeout(await program.record(over))
            program.suspend(Parked(entry.until_ms, (name,), f"waits for {name!r}"))

    # ── side by side ─────────────────────────────────────────────────────────────────────

    async def parallel(self, *steps: Awaitable[Any]) -> list[Any]:
        """Run these side by side; their results in the order given.

        All are waited for, so that what could be done is on record: then the first failure is
        raised, or the job parks for those that sleep or wait.
        """
        tasks = [asyncio.ensure_future(step) for step in steps]
        try:
            if tasks:
                await asyncio.wait(tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        errors = [error for task in tasks if (error := _error_of(task)) is not None]
        for error in errors:
            if not isinstance(error, Suspension) or error.verdict is None:
                raise error
        parked = [error.verdict for error in errors if isinstance(error, Suspension) and error.verdict is not None]
        if parked:
            raise Suspension(merged(parked))
        return [task.result() for task in tasks]


def _as_timeout(entry: JournalEntry) -> WaitTimeout:
    return WaitTimeout(f"the signal {entry.name!r} did not come in time")


def _error_of(task: "asyncio.Future[Any]") -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()
