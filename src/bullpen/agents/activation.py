"""One activation of a task by a worker: from what is on record to its end, to a question, or to a failure.

Nothing is saved when a worker must stop: what was done is on record already, and the next activation goes on there.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.briefing import options_of, tools_of
from bullpen.agents.conversing import first_words
from bullpen.agents.ending import Ending, budget_of, without_secrets
from bullpen.agents.kinds import TaskKind
from bullpen.agents.lacking import WaitForWorker, lack_of
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.steps import StepsDiffer
from bullpen.agents.loop.streaming import Streaming
from bullpen.agents.loop.tally import tally
from bullpen.agents.loop.words import NeedsAnswer, Stop
from bullpen.agents.outage import WaitForProvider, WaitForTurn, limited_since_ms, over_after, pause_after
from bullpen.agents.research import Research
from bullpen.agents.surroundings import Around, Keeps
from bullpen.agents.waiting import Wait
from bullpen.agents.words import TaskProblem, TaskResult, TaskTerms, problem_at, problem_of, to_plain
from bullpen.agents.workshop import Workshop
from bullpen.errors import (
    AgentError,
    CheckpointFailed,
    CheckpointMissing,
    CreditsShort,
    LeaseLost,
    ModelLimited,
    ModelOverloaded,
    Postpone,
    ProvidersDown,
    RecordsUnavailable,
    SandboxTimeout,
    Signal,
    Unrecoverable,
)
from bullpen.job.verdicts import Parked
from bullpen.journal.suspension import Suspension
from bullpen.records.journal import JournalOn
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind, Task, TaskState
from bullpen.worker.context import Context

_LOOK_AGAIN_MS = 300_000
"""A task that waits for a person looks by itself now and then: whoever answered may have died before waking it."""


async def activate(workshop: Workshop, ctx: Context, task_id: str) -> dict[str, object]:
    """Do the task as far as it goes; its result. The handler of every queue that carries tasks."""
    task = await workshop.records.runs.task(task_id)
    if task.state.is_final:
        await workshop.ended(task)
        return _known(task)
    return await _Activation(workshop, ctx, task).run()


def _known(task: Task) -> dict[str, object]:
    """What a task came to before its job knew of it."""
    assert task.outcome is not None
    result = msgspec.json.decode(task.outcome, type=TaskResult)
    if result.error is not None:
        raise Unrecoverable(f"{result.error.code}: {result.error.message}")
    return _brief(result)


def _brief(result: TaskResult) -> dict[str, object]:
    """What the queue keeps: the rest is in the records."""
    return {"run_id": result.run_id, "task_id": result.task_id, "status": result.status, "stop": result.stop_reason}


class _Activation:
    def __init__(self, workshop: Workshop, ctx: Context, task: Task) -> None:
        self._workshop = workshop
        self._ctx = ctx
        self._task = task
        self._terms = msgspec.json.decode(task.terms, type=TaskTerms)
        self._database = workshop.records.database
        self._recorder = Recorder(
            self._database,
            task.id,
            ctx.epoch,
            budget=budget_of(task, self._terms),
            run_id=task.run,
            redactor=workshop.redactor,
            observers=workshop.observers,
        )
        self._keeps: Keeps | None = None
        """Makes artifacts of what the task leaves in its workspace."""

    async def run(self) -> dict[str, object]:
        if (wait := await self._hindered()) is not None:
            return await self._not_begun(wait)
        await self._recorder.begin(self._mark_running)
        try:
            ending = await self._work()
        except asyncio.CancelledError:
            # A worker that stops only gives the task back: the next one goes on.
            if self._ctx.is_cancel_asked:
                with contextlib.suppress(LeaseLost):  # whoever asked has ended it already
                    await asyncio.shield(self._end(Ending(Stop.CANCELLED, problem_at(Stop.CANCELLED))))
            raise
        except NeedsAnswer as question:
            raise await self._suspended(question) from None
        except StepsDiffer as error:
            raise await self._unfit(error) from None
        except (ModelLimited, ModelOverloaded, SandboxTimeout) as error:
            ending = await self._limited(error)
        except ProvidersDown as error:
            raise await self._outlasting(self._wait_for_provider(error)) from None
        except (LeaseLost, RecordsUnavailable, Signal):
            raise  # another has it, or the worker knows what to do, or nothing can be put on record now
        except Exception as error:
            await self._failed(error)
            raise
        return await self._end(ending)

    async def _hindered(self) -> Wait | None:
        """What it has to wait for before this worker can do anything for it."""
        if lack := lack_of(self._workshop, self._terms):
            return WaitForWorker(self._database, self._task, self._terms, lack)
        try:
            await self._workshop.provider.check(self._terms.model)
        except ProvidersDown as error:
            return self._wait_for_provider(error)
        except ModelLimited as error:
            return WaitForTurn(self._database, self._task, self._terms, error, redactor=self._workshop.redactor)
        return None

    def _wait_for_provider(self, error: ProvidersDown) -> Wait:
        return WaitForProvider(self._database, self._task, self._terms, error, redactor=self._workshop.redactor)

    async def _not_begun(self, wait: Wait) -> dict[str, object]:
        """Back to its line, with no attempt used, until it can be done; not for ever."""
        if (question := self._task.question) is not None and not await self._is_answered(question):
            raise self._parked_for(str(question["signal"]), str(question["tool"]))  # a person may take their time
        await self._recorder.begin(wait.note)
        if not wait.is_over:
            raise Suspension(wait.parked())
        return await self._end(wait.ending())

    async def _is_answered(self, question: Mapping[str, Any]) -> bool:
        async with self._database.reading(brief=True) as connection:
            return await JournalOn(connection, self._database).has_signal(self._task.id, str(question["signal"]))

    async def _mark_running(self, connection: AsyncConnection) -> None:
        data = {"message": "started", "attempt": self._ctx.attempt, "activation": self._ctx.epoch}
        told = NewProgress(ProgressKind.JOB_STARTED, data)
        self._task = await RunsOn(connection, self._database).move(self._task.id, TaskState.RUNNING, told)

    # ── working ──────────────────────────────────────────────────────────────────────────

    async def _work(self) -> Ending:
        """Until the loop ends or its time is over."""
        left_s = self._terms.timeout_s - tally(self._recorder.entries).worked_ms / 1000
        limit = asyncio.timeout(max(0.0, left_s))
        try:
            async with limit, self._around() as around:
                self._keeps = around.keeps
                async with Streaming(self._recorder, is_on=self._terms.stream) as streaming:
                    workshop = self._workshop
                    tools = await tools_of(workshop, self._task, self._terms, behind=around.level)
                    options = options_of(self._terms, around, streaming, workshop.observers)
                    loop = AgentLoop(self._recorder, workshop.provider, workshop.models, tools, options)
                    ending = await self._done_by(loop)
        except TimeoutError:
            if not limit.expired():
                raise
            return Ending(Stop.TIMEOUT, problem_at(Stop.TIMEOUT))
        finally:
            await self._workshop.done_with(self._task.id)
        if ending.problem is None and self._keeps is not None:
            await self._keeps()
        return ending

    def _around(self) -> AbstractAsyncContextManager[Around]:
        workshop = self._workshop
        return workshop.surroundings.around(workshop.records, self._task, epoch=self._ctx.epoch)

    async def _done_by(self, loop: AgentLoop) -> Ending:
        if self._task.kind != TaskKind.WIDE_RESEARCH:
            stop = (await loop.run(self._terms.model, first_words(self._task, self._terms))).stop
            return Ending(stop, problem_at(stop, loop.short))
        try:
            stop = await Research(self._workshop, self._recorder, loop, self._task, self._terms).run()
        except CreditsShort as short:
            return Ending(Stop.CREDITS, problem_at(Stop.CREDITS, short))
        return Ending(stop, problem_at(stop))

    # ── how it ends ──────────────────────────────────────────────────────────────────────

    async def _end(self, ending: Ending) -> dict[str, object]:
        result = await self._settle(ending)
        if result.error is not None and ending.stop is not Stop.CANCELLED:
            raise Unrecoverable(f"{result.error.code}: {result.error.message}")
        return _brief(result)

    async def _settle(self, ending: Ending) -> TaskResult:
        if ending.problem is not None and ending.stop is not Stop.CANCELLED:
            await self._keep_what_there_is()
        result = await self._workshop.ender.end_own(self._recorder, self._task, ending)
        await self._workshop.ended(self._task)
        return result

    async def _keep_what_there_is(self) -> None:
        """Of a task that failed; that its files cannot be kept is not what it is said to fail by."""
        with contextlib.suppress(CheckpointFailed, CheckpointMissing):
            if self._keeps is not None:
                await self._keeps()

    async def _suspended(self, question: NeedsAnswer) -> Suspension:
        asked = {
            "signal": question.signal,
            "tool": question.tool,
            "arguments": self._workshop.redactor.text(question.arguments),
            "text": str(question),
        }
        async with self._database.writing(brief=True) as connection:
            told = NewProgress(ProgressKind.JOB_SUSPENDED, {"question": asked})
            await RunsOn(connection, self._database).move(self._task.id, TaskState.SUSPENDED, told, question=asked)
        return self._parked_for(question.signal, question.tool)

    def _parked_for(self, signal: str, tool: str) -> Suspension:
        look_ms = self._database.clock.now_ms() + _LOOK_AGAIN_MS
        return Suspension(Parked(look_ms, (signal,), f"waits for an answer about {tool}"))

    async def _unfit(self, error: StepsDiffer) -> Suspension:
        """Not failed, and nothing lost: another version of the program, or other settings, may go on with it."""
        note = f"the task no longer fits its journal: {error}"
        async with self._database.writing(brief=True) as connection:
            told = NewProgress(ProgressKind.JOB_SUSPENDED, {"message": note})
            await RunsOn(connection, self._database).move(self._task.id, TaskState.SUSPENDED, told)
        return Suspension(Parked(self._database.clock.now_ms() + _LOOK_AGAIN_MS, note=note))

    async def _outlasting(self, wait: Wait) -> Suspension:
        """Back to its line in the midst of it; the next look finds how long it has waited."""
        async with self._database.writing(brief=True) as connection:
            await wait.note(connection)
        return Suspension(wait.parked())

    async def _limited(self, error: ModelLimited | ModelOverloaded | SandboxTimeout) -> Ending:
        """Back to its line, with no attempt used: but not for longer, at one step, than the task may take in all."""
        now_ms = self._database.clock.now_ms()
        went_ms = now_ms - await limited_since_ms(self._database, self._task, self._recorder.entries)
        if went_ms >= self._terms.timeout_s * 1000:
            return over_after(error)
        await self._note_retry(problem_of(error))
        pause_ms, note = pause_after(error, went_ms)
        raise Suspension(Parked(now_ms + pause_ms, note=note)) from None

    async def _failed(self, error: Exception) -> None:
        """One more attempt, or the end. One that got further is not counted: its next begins at another step."""
        redactor, job = self._workshop.redactor, self._ctx.job
        problem = without_secrets(problem_of(error), redactor.all_in)
        told = f"{problem.code}: {problem.message}"
        # The job keeps the stack, which has the words of all errors in it.
        cause = None if redactor.is_in(error) else error
        is_last = self._ctx.attempt >= job.spec.attempts and not self._recorder.got_further
        if not problem.retryable or is_last:
            await self._settle(Ending(Stop.ERROR, problem))
            raise Unrecoverable(told) from cause
        await self._note_retry(problem)
        if self._recorder.got_further:
            raise Postpone(job.spec.backoff.delay_ms / 1000, told) from cause
        if cause is None:
            raise AgentError(told) from None

    async def _note_retry(self, problem: TaskProblem) -> None:
        data = self._workshop.redactor.all_in({"error": to_plain(problem), "attempt": self._ctx.attempt})
        told = NewProgress(ProgressKind.JOB_RETRYING, data)
        async with self._database.writing(brief=True) as connection:
            await RunsOn(connection, self._database).move(self._task.id, TaskState.RETRYING, told)
