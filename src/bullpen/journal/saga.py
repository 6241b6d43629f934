"""Sagas: steps that can be undone, and are, backwards, when one of them fails.

    step ─▶ step ─▶ step ─▶ done
              │ fails
              ▼
            turn ─▶ undo ─▶ undo ─▶ SagaFailed

The turn is on record before the first step is undone: from then on no activation goes forward again.
"""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import msgspec

from bullpen.errors import Postpone, SagaFailed, StepFailed
from bullpen.job.entries import EntryKind, JournalEntry
from bullpen.job.options import Duration, exponential
from bullpen.job.record import Failure
from bullpen.journal.performing import Work, as_type, check_can_ask
from bullpen.journal.retries import ONCE, StepRetry, as_retry
from bullpen.journal.steps import Steps

T = TypeVar("T")

UNDO_RETRY = StepRetry(attempts=5, backoff=exponential(1))


class _Undoable(msgspec.Struct, frozen=True):
    place: int
    name: str
    undo: Callable[[Any], Any]
    result: Any
    retry: StepRetry


class Saga:
    """Made by `ctx.saga()`; everything in its block is done, or what was done of it is undone."""

    def __init__(self, steps: Steps, is_to_stop: Callable[[], bool]) -> None:
        check_can_ask()
        self._steps = steps
        self._program = steps.program
        self._start = self._program.next_place
        self._is_to_stop = is_to_stop
        """Whether the job is to stop: then whatever it raises is no failure of the saga."""
        self._done: list[_Undoable] = []

    def using(self, steps: Steps) -> Self:
        """The same saga, whose functions are called as these steps do it."""
        self._steps = steps
        return self

    # ── forward ──────────────────────────────────────────────────────────────────────────

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        undo: Callable[[Any], Any] | None = None,
        retry: StepRetry | int | None = None,
        undo_retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: type[T],
    ) -> Awaitable[T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        undo: Callable[[Any], Any] | None = None,
        retry: StepRetry | int | None = None,
        undo_retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: None = None,
    ) -> Awaitable[Any]: ...

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        undo: Callable[[Any], Any] | None = None,
        retry: StepRetry | int | None = None,
        undo_retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: type[Any] | None = None,
    ) -> Awaitable[Any]:
        """A step whose result `undo` is called with, should the saga fail later on."""
        work = self._steps.prepare(name, function, args, retry=as_retry(retry) or ONCE, timeout=timeout)
        return self._step(work, undo, as_retry(undo_retry) or UNDO_RETRY, returns)

    async def _step(
        self, work: Work, undo: Callable[[Any], Any] | None, undo_retry: StepRetry, returns: type[Any] | None
    ) -> Any:
        turn = await self._program.find_turn(self._start)
        if turn is not None and turn.place <= work.place:
            # The code between two steps raised here in an earlier activation; it need not do so again.
            failure = turn.failure or Failure("failed")
            raise StepFailed(failure.message, work.name, failure)
        entry = await self._steps.perform(work)
        result = as_type(self._program.decode(entry), returns, work.name)
        if undo is not None:
            self._done.append(_Undoable(work.place, work.name, undo, result, undo_retry))
        return result

    # ── backward ─────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and (
            not isinstance(error, Exception) or isinstance(error, Postpone) or self._is_to_stop()
        ):
            return  # it leaves for now and comes back, or is stopped from outside
        turn = await self._program.find_turn(self._start)
        if error is None and turn is None:
            return
        turn = await self._turn_back(turn, error)
        for one in sorted(self._done, key=lambda one: one.place, reverse=True):
            await self._undo(one)
        failure = turn.failure or Failure("failed")
        undone = ", ".join(repr(one.name) for one in sorted(self._done, key=lambda one: one.place, reverse=True))
        message = f"{failure.message}; undone: {undone or 'nothing was done'}"
        raise SagaFailed(message, failure=failure) from error

    async def _turn_back(self, turn: JournalEntry | None, error: BaseException | None) -> JournalEntry:
        program = self._program
        if turn is not None:
            if turn.place > program.next_place:
                program.does_not_fit(f"the saga turned back at step {turn.place}, and the program leaves it before")
            program.next_place = turn.place + 1
            return turn
        assert error is not None
        now_ms = program.now_ms()
        failure = error.failure if isinstance(error, StepFailed) else program.describe(error)
        assert isinstance(failure, Failure)
        return await program.record(
            JournalEntry(
                program.take_place(), "saga", EntryKind.TURN, failure=failure, started_ms=now_ms, ended_ms=now_ms
            )
        )

    async def _undo(self, one: _Undoable) -> None:
        work = self._steps.prepare(one.name, one.undo, (one.result,), retry=one.retry, kind=EntryKind.UNDO)
        await self._steps.perform(work)
