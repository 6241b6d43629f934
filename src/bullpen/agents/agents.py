"""The front door to agents: ask for something, watch it, answer its questions, stop it, and what came of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, TypeAlias, Unpack, overload

import msgspec

from bullpen.agents.activation import activate
from bullpen.agents.asking import Asking, usual_model
from bullpen.agents.comparing import Comparison, compare
from bullpen.agents.conversing import conversation
from bullpen.agents.family import Ender
from bullpen.agents.forking import Edit
from bullpen.agents.jobs import TaskJobs
from bullpen.agents.llm.environment import providers_from
from bullpen.agents.llm.models import ModelTable, models_from
from bullpen.agents.llm.prices import micro
from bullpen.agents.llm.provider import Provider
from bullpen.agents.llm.words import Message
from bullpen.agents.loop.words import Answer
from bullpen.agents.records_outage import RecordsOutage
from bullpen.agents.redacting import Redactor
from bullpen.agents.steering import Steering
from bullpen.agents.submitting import new_task_id
from bullpen.agents.surroundings import Sandboxed, Surroundings
from bullpen.agents.tools.tool import Tool, ToolOptions, tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.agents.watching import follow, result
from bullpen.agents.words import Submitted, TaskRequest, TaskResult
from bullpen.agents.workshop import Workshop, chores_of, router_for
from bullpen.app import Bullpen
from bullpen.records.chores import Chores
from bullpen.records.records import Records
from bullpen.records.relay import OutboxRelay
from bullpen.records.runs.words import ProgressEvent, Run, Task
from bullpen.worker.context import Context

Equipment: TypeAlias = Callable[["Agents"], AbstractAsyncContextManager[object]]
"""Gives agents tools for the length of a block."""


class Agents:
    """Runs of agents on an application's queues.

        agents = Agents(pen)                  # or `pen.agents`

        @pen.tool(policy=Policy.READ_ONLY)
        async def weather(city: str) -> str:
            \"\"\"The weather in a city.\"\"\"

        await agents.deposit("acme", 100)
        run = await agents.submit("What should I wear in Bern?", tenant="acme")
        print((await agents.result(run.run_id)).output)

    Workers of the application do the tasks: whoever runs them needs the same tools and models. `records` is where
    runs are kept, as `Records.open` takes it; `providers` answer for models, those of the environment if not given.
    `equipment` gives them tools for as long as they are open: `equipped` has all that come with Bullpen.
    Where tasks are only asked for, as in a server, `tools=None` leaves it to the workers which tools there are, and
    `relay` is one of the same records that runs already.
    """

    def __init__(
        self,
        pen: Bullpen,
        records: Records | str | None = None,
        *,
        providers: Sequence[Provider] | None = None,
        models: ModelTable | None = None,
        model: str | None = None,
        tools: Iterable[Tool] | None = (),
        surroundings: Surroundings | None = None,
        relay: OutboxRelay | None = None,
        equipment: Equipment | None = None,
    ) -> None:
        pen.employ(self)
        self.pen = pen
        self.tools = Toolbox(tools or ())
        self._knows_tools = tools is not None
        self.models = models or models_from()
        self._providers = providers_from() if providers is None else list(providers)
        self._model = model
        self.surroundings = surroundings or Sandboxed()
        """What tools of tasks stand in."""
        self._where = records
        self.on_activation_end: Callable[[str], Awaitable[None]] | None = None
        """Told of each task that a worker here stops doing, for whoever gave it tools that hold something."""
        self._workshop: Workshop | None = None
        self._equipment = equipment
        self._equipped: AbstractAsyncContextManager[object] | None = None
        self._given_relay = relay
        self._relay: OutboxRelay | None = None
        self._chores: Chores | None = None
        self._opening = asyncio.Lock()
        self._records_outage = RecordsOutage()
        self._jobs = TaskJobs(pen, self._do)

    async def _do(self, ctx: Context, task_id: str) -> dict[str, Any]:
        with self._records_outage.outlasted():
            return await activate(await self.workshop(), ctx, task_id)

    # ── opening and closing ──────────────────────────────────────────────────────────────

    async def workshop(self) -> Workshop:
        """What tasks are done with; opened with the first use."""
        async with self._opening:
            if self._workshop is None:
                await self.pen.ready()  # in a worker nobody else has opened it
                await self._equip()
                records = self._where if isinstance(self._where, Records) else await Records.open(self._where)
                redactor = Redactor()
                ender = Ender(records.database, self.pen.store, redactor, self.pen.telemetry)
                self._workshop = Workshop(
                    records=records,
                    provider=router_for(self._providers, self.models, records, self.pen.telemetry),
                    models=self.models,
                    tools=self.tools,
                    surroundings=self.surroundings,
                    job_of=self._jobs.job_of,
                    queue_of=self.pen.queue,
                    sent=self._sent_some,
                    done_with=self._done_with,
                    ender=ender,
                    ended=Steering(self.pen, records, ender).wake_parent,
                    redactor=redactor,
                    observers=self.pen.telemetry,
                )
                if isinstance(self.surroundings, Sandboxed):
                    self.surroundings.watched_by(self.pen.telemetry)
                    self.surroundings.told_in(records.sandboxes)
                self._relay = self._given_relay or records.relay(self.pen.store)
                if self._given_relay is None:
                    self._relay.start()
                self._chores = chores_of(self._workshop, self.pen.store)
                self._chores.start()
            return self._workshop

    async def _equip(self) -> None:
        if self._equipment is not None and self._equipped is None:
            equipped = self._equipment(self)
            await equipped.__aenter__()
            self._equipped = equipped

    async def records(self) -> Records:
        return (await self.workshop()).records

    async def close(self) -> None:
        """Let go of the records, unless they were given, and of the providers. Safe to call twice."""
        async with self._opening:
            workshop, self._workshop = self._workshop, None
            relay, self._relay = self._relay, None
            chores, self._chores = self._chores, None
            equipped, self._equipped = self._equipped, None
        if chores is not None:
            await chores.stop()
        if relay is not None and relay is not self._given_relay:
            await relay.stop()
        if workshop is not None:
            await workshop.surroundings.close()
            await workshop.provider.close()
            if not isinstance(self._where, Records):
                await workshop.records.close()
        if equipped is not None:
            await equipped.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        await self.workshop()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @overload
    def tool(self, function: Callable[..., Any], /) -> Tool: ...

    @overload
    def tool(self, **options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...

    def tool(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:  # type: ignore[misc]  # by name
        """Make a tool of a typed function, as `bullpen.agents.tools.tool` does, and let tasks use it."""

        def put(made: Tool) -> Tool:
            self.tools.put(made)
            return made

        if function is not None:
            return put(tool(function))
        return lambda function: put(tool(**options)(function))

    # ── asking ───────────────────────────────────────────────────────────────────────────

    async def deposit(self, tenant: str, credits_: int, *, key: str | None = None) -> None:
        """Put whole credits into a tenant's purse; the same key again changes nothing."""
        records = await self.records()
        await records.credits.deposit(tenant, micro(credits_), key=key or new_task_id(), memo="deposit")

    async def submit(
        self,
        request: TaskRequest | str,
        *,
        tenant: str = "default",
        created_by: str = "",
        idempotency_key: str | None = None,
        **more: Any,
    ) -> Submitted:
        """Have it done by whichever worker is free. BadOption names what is wrong; RecordMissing, CreditsShort.

        The same request by the same asker under the same key is the first run, as it stands now; IdempotencyConflict
        for another request.
        """
        if isinstance(request, str):
            request = msgspec.convert({"prompt": request, **more}, TaskRequest)
        asking = await self._asking()
        return await asking.submit(request, tenant=tenant, created_by=created_by, idempotency_key=idempotency_key)

    async def _asking(self) -> Asking:
        def model() -> str:
            return usual_model(self._model, self._providers, self.models)

        workshop = await self.workshop()
        return Asking(workshop, usual_model=model, knows_tools=self._knows_tools, sent=self._sent_some)

    async def fork(
        self,
        task_id: str,
        *,
        at: int,
        prompt: str | None = None,
        edits: Sequence[Edit] = (),
        dry: bool = False,
        priority: str | None = None,
        tenant: str | None = None,
        created_by: str = "",
    ) -> Submitted:
        """A new run from this place of a task's journal on, its steps before kept, with what is edited in them.

        Another prompt begins at place 0. A dry one calls no tool: each answers what it answered the task.
        It has the files of that step, or its `note` says that they are gone; and the first task's priority if no
        other is told.
        """
        return await (await self._asking()).fork(
            task_id,
            at=at,
            prompt=prompt,
            edits=edits,
            dry=dry,
            priority=priority,
            tenant=tenant,
            created_by=created_by,
        )

    async def _done_with(self, task_id: str) -> None:
        if self.on_activation_end is not None:
            await self.on_activation_end(task_id)

    def _sent_some(self) -> None:
        if self._relay is not None:
            self._relay.nudge()

    # ── looking ──────────────────────────────────────────────────────────────────────────

    async def run(self, run_id: str, *, tenant: str | None = None) -> Run:
        return await (await self.records()).runs.get(run_id, tenant=tenant)

    async def tasks(self, run_id: str) -> list[Task]:
        return await (await self.records()).runs.tasks(run_id)

    async def follow(self, run_id: str, *, after: int = 0) -> AsyncIterator[ProgressEvent]:
        """What happens in a run after this number, as it happens, until it is over."""
        async for event in follow((await self.records()).runs, run_id, after):
            yield event

    async def result(self, run_id: str, *, timeout: float | None = None) -> TaskResult:  # noqa: ASYNC109 - its own promise
        """What came of it, waited for. ResultTimeout if it is not over in time: it goes on all the same."""
        return await result((await self.records()).runs, run_id, timeout)

    async def messages(self, task_id: str, *, tenant: str | None = None) -> list[Message]:
        """All that was said in a task so far: before it, by the model, by its tools. RecordMissing."""
        records = await self.records()
        return await conversation(records.database, await records.runs.task(task_id, tenant=tenant))

    async def compare(self, run_id: str, other_id: str, *, tenant: str | None = None) -> Comparison:
        """Where two runs of one tenant part, and what each did from there on. RecordMissing; BadOption."""
        return await compare(await self.records(), run_id, other_id, tenant=tenant)

    # ── steering ─────────────────────────────────────────────────────────────────────────

    async def cancel(self, run_id: str, *, tenant: str | None = None, reason: str = "") -> list[TaskResult]:
        """End all its tasks, wherever they are: what they have not spent goes back. WrongState if it is over."""
        return await (await self._steering()).cancel(run_id, tenant=tenant, reason=reason)

    async def _steering(self) -> Steering:
        workshop = await self.workshop()
        return Steering(self.pen, workshop.records, workshop.ender)

    async def answer(self, task_id: str, answer: Answer, *, tenant: str | None = None) -> None:
        """Say what became of the call that a task asks about, and let it go on. WrongState if it does not ask."""
        await (await self._steering()).answer(task_id, answer, tenant=tenant)
