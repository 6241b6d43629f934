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

from bullpen.agents.ending import Ending, budget_of
from bullpen.agents.forking import read_all, recorded_tools
from bullpen.agents.kinds import TaskKind, usual_tools
from bullpen.agents.lacking import WaitForWorker, lack_of
from bullpen.agents.llm.health import limit_ms
from bullpen.agents.llm.words import Message, system, user
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.streaming import Streaming
from bullpen.agents.loop.tally import tally
from bullpen.agents.loop.words import LoopLimits, NeedsAnswer, Stop
from bullpen.agents.outage import WaitForProvider, WaitForTurn
from bullpen.agents.research import Research
from bullpen.agents.sandbox.base import Level
from bullpen.agents.surroundings import Around, Keeps
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.agents.waiting import Wait
from bullpen.agents.words import TaskProblem, TaskResult, TaskTerms, problem_at, problem_of, to_plain
from bullpen.agents.workshop import Workshop
from bullpen.errors import (
    CheckpointFailed,
    CheckpointMissing,
    CreditsShort,
    LeaseLost,
    ModelLimited,
    ModelOverloaded,
    ProvidersDown,
    Signal,
    Unrecoverable,
)
from bullpen.job.verdicts import Parked
from bullpen.journal.suspension import Suspension
from bullpen.records.journal import JournalOn
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import ProgressKind, Task, TaskState, Told
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
            tells=task.run,
            redact=workshop.redactor.all_in,
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
                await asyncio.shield(self._end(Ending(Stop.CANCELLED, problem_at(Stop.CANCELLED))))
            raise
        except NeedsAnswer as question:
            raise await self._suspended(question) from None
        except (ModelLimited, ModelOverloaded) as error:
            ending = await self._limited(error)
        except ProvidersDown as error:
            raise await self._outlasting(self._wait_for_provider(error)) from None
        except (LeaseLost, Signal):
            raise  # another has it, or the worker knows what to do
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
        told = {"message": "started", "attempt": self._ctx.attempt, "activation": self._ctx.epoch}
        runs = RunsOn(connection, self._database)
        self._task = await runs.move(self._task.id, TaskState.RUNNING, Told(ProgressKind.JOB_STARTED, told))

    # ── working ──────────────────────────────────────────────────────────────────────────

    async def _work(self) -> Ending:
        """Until the loop ends or its time is over."""
        left_s = self._terms.timeout_s - tally(self._recorder.entries).worked_ms / 1000
        limit = asyncio.timeout(max(0.0, left_s))
        try:
            async with limit, self._around() as around:
                self._keeps = around.keeps
                async with Streaming(self._recorder, is_on=self._terms.stream) as streaming:
                    loop = AgentLoop(
                        self._recorder,
                        self._workshop.provider,
                        self._workshop.models,
                        await self._tools(around.level),
                        self._options(around, streaming),
                    )
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
            stop = (await loop.run(self._terms.model, self._messages())).stop
            return Ending(stop, problem_at(stop, loop.short))
        try:
            stop = await Research(self._workshop, self._recorder, loop, self._task, self._terms).run()
        except CreditsShort as short:
            return Ending(Stop.CREDITS, problem_at(Stop.CREDITS, short))
        return Ending(stop, problem_at(stop))

    async def _tools(self, walls: Level) -> Toolbox:
        """BadOption names one that was asked for and is not here."""
        there, wanted = self._workshop.tools, self._terms.tools
        if wanted is None:
            wanted = usual_tools(TaskKind(self._task.kind), [tool.name for tool in there])
        tools = there.allowed(wanted)
        if not self._terms.is_dry:
            return tools.behind(walls)
        first = self._terms.forked_from
        return recorded_tools(tools, [] if first is None else await read_all(self._database, first))

    def _options(self, around: Around, streaming: Streaming) -> LoopOptions:
        terms = self._terms
        limits = LoopLimits(
            steps=terms.steps,
            tool_calls=terms.tool_calls,
            tokens=terms.tokens,
            seconds=terms.timeout_s,
            reply_tokens=terms.reply_tokens,
        )
        return LoopOptions(
            limits=limits,
            temperature=terms.temperature,
            context=around.context,
            saves=around.saves,
            on_delta=streaming.take,
            before_finish=streaming.flush,
            observers=self._workshop.observers,
        )

    def _messages(self) -> list[Message]:
        before = [system(self._terms.system)] if self._terms.system else []
        return [*before, *self._terms.history, user(self._task.prompt)]

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
            told = Told(ProgressKind.JOB_SUSPENDED, {"question": asked})
            await RunsOn(connection, self._database).move(self._task.id, TaskState.SUSPENDED, told, question=asked)
        return self._parked_for(question.signal, question.tool)

    def _parked_for(self, signal: str, tool: str) -> Suspension:
        look_ms = self._database.clock.now_ms() + _LOOK_AGAIN_MS
        return Suspension(Parked(look_ms, (signal,), f"waits for an answer about {tool}"))

    async def _outlasting(self, wait: Wait) -> Suspension:
        """Back to its line in the midst of it; the next look finds how long it has waited."""
        async with self._database.writing(brief=True) as connection:
            await wait.note(connection)
        return Suspension(wait.parked())

    async def _limited(self, error: ModelLimited | ModelOverloaded) -> Ending:
        """Back to its line, with no attempt used: but not for longer than the task may take in all."""
        now_ms = self._database.clock.now_ms()
        if now_ms - (self._task.started_ms or now_ms) >= self._terms.timeout_s * 1000:
            return Ending(Stop.TIMEOUT, problem_at(Stop.TIMEOUT))
        await self._note_retry(problem_of(error))
        until_ms = now_ms + limit_ms(error)
        raise Suspension(Parked(until_ms, note=f"waits until {error.provider} may be asked again")) from None

    async def _failed(self, error: Exception) -> None:
        problem = problem_of(error)
        if not problem.retryable or self._ctx.attempt >= self._ctx.job.spec.attempts:
            await self._settle(Ending(Stop.ERROR, problem))
            raise Unrecoverable(f"{problem.code}: {problem.message}") from error
        await self._note_retry(problem)

    async def _note_retry(self, problem: TaskProblem) -> None:
        data = {"error": to_plain(problem), "attempt": self._ctx.attempt}
        told = Told(ProgressKind.JOB_RETRYING, self._workshop.redactor.all_in(data))
        async with self._database.writing(brief=True) as connection:
            await RunsOn(connection, self._database).move(self._task.id, TaskState.RETRYING, told)
