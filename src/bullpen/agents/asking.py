"""Asking for a run: a new one, or a fork of one; written with its job, for whichever worker is free."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from bullpen.agents.forking import Edit, plant, prepare_fork
from bullpen.agents.llm.models import ModelTable
from bullpen.agents.llm.provider import Provider
from bullpen.agents.submitting import Prepared, key_of, once, prepare, write
from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.watching import expected_wait_s
from bullpen.agents.words import Submitted, TaskRequest
from bullpen.agents.workshop import Workshop
from bullpen.errors import BadOption
from bullpen.records.runs.keys import RunKey
from bullpen.settings import told

MODEL = "BULLPEN_MODEL"
"""The model that is asked where a request names none."""


class Asking:
    """Puts tasks into the records of a workshop. Without `knows_tools` only workers know which tools there are.

    `sent` is called once they are written: their jobs are on their way.
    """

    def __init__(
        self, workshop: Workshop, *, usual_model: Callable[[], str], knows_tools: bool, sent: Callable[[], None]
    ) -> None:
        self._workshop = workshop
        self._sent = sent
        self._usual_model = usual_model
        self._knows_tools = knows_tools

    async def submit(
        self, request: TaskRequest, *, tenant: str, created_by: str, idempotency_key: str | None
    ) -> Submitted:
        if idempotency_key is None:
            return await self._submitted(request, tenant, created_by)
        key = key_of(request, idempotency_key, tenant=tenant, created_by=created_by)
        return await once(self._workshop.records, key, partial(self._submitted, request, tenant, created_by, key))

    async def _submitted(
        self, request: TaskRequest, tenant: str, created_by: str, key: RunKey | None = None
    ) -> Submitted:
        workshop = self._workshop
        records, around = workshop.records, workshop.surroundings
        prepared = prepare(
            request,
            tenant,
            models=workshop.models,
            tools=workshop.tools if self._knows_tools else None,
            # Whoever names one need not have its provider: the workers have it.
            usual_model=request.model or self._usual_model(),
            sandbox=around.spec if isinstance(around, Sandboxed) else None,
        )
        job = workshop.job_of(prepared, tenant)
        wait_s = await self._expected_wait_s(prepared.route.queue)
        async with records.database.writing(brief=True) as connection:
            run_id, task_id = await write(
                connection, records, prepared, tenant=tenant, created_by=created_by, job=job, key=key
            )
        self._sent_one(prepared)
        return Submitted(run_id=run_id, task_id=task_id, state="queued", estimated_wait_s=wait_s)

    async def fork(
        self,
        task_id: str,
        *,
        at: int,
        prompt: str | None,
        edits: Sequence[Edit],
        dry: bool,
        priority: str | None,
        tenant: str | None,
        created_by: str,
    ) -> Submitted:
        workshop, records = self._workshop, self._workshop.records
        task = await records.runs.task(task_id, tenant=tenant)
        prepared, entries = await prepare_fork(
            records, task, at=at, prompt=prompt, edits=edits, is_dry=dry, priority=priority
        )
        job = workshop.job_of(prepared, task.tenant)
        wait_s = await self._expected_wait_s(prepared.route.queue)
        async with records.database.writing(brief=True) as connection:
            run_id, new_id = await write(
                connection, records, prepared, tenant=task.tenant, created_by=created_by, job=job
            )
            note = await plant(connection, records, task, new_id, entries, at=at)
        self._sent_one(prepared)
        return Submitted(run_id=run_id, task_id=new_id, state="queued", estimated_wait_s=wait_s, note=note)

    def _sent_one(self, prepared: Prepared) -> None:
        self._workshop.observers.credits_set_aside(prepared.kind, prepared.terms.estimate)
        self._sent()

    async def _expected_wait_s(self, queue: str) -> float | None:
        """Asked before a task is written: it counts those ahead of it, never the task itself."""
        return await expected_wait_s(self._workshop.queue_of(queue), self._workshop.records.runs)


def usual_model(named: str | None, providers: Iterable[Provider], models: ModelTable) -> str:
    """This one, that of the environment, or the first that somebody here answers for. BadOption if there is none."""
    if known := named or told(MODEL):
        return known
    there = {provider.name for provider in providers}
    for name, model in models.models.items():
        if model.provider in there:
            return name
    raise BadOption(f"model: there is no provider; name one, or set {MODEL}, OPENAI_API_KEY or ANTHROPIC_API_KEY")
