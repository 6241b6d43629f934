"""Tasks of agents: asked for, looked at, answered."""

from typing import Annotated

import msgspec
from fastapi import Header, Query
from starlette.requests import Request

from bullpen.agents.conversing import conversation
from bullpen.agents.forking import Edit
from bullpen.agents.loop.words import Answer
from bullpen.agents.words import Submitted, TaskResult
from bullpen.errors import BadOption, WrongState
from bullpen.records.journal import SqlJournal
from bullpen.records.runs.words import Task
from bullpen.server.access.allowing import RunReader, allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import note
from bullpen.server.models.base import Done
from bullpen.server.models.runs import (
    ForkedShown,
    ResultShown,
    SubmittedShown,
    TaskShown,
    shown_result,
)
from bullpen.server.models.steps import TaskMessages, TaskSteps
from bullpen.server.models.tasks import AnswerBody, ForkBody, TaskBody
from bullpen.server.routes.filtering import tenant_to_charge
from bullpen.server.routes.routing import Name, TheSite, agents_family
from bullpen.server.run_views import shown_message, shown_step, shown_tasks
from bullpen.server.site import Site
from bullpen.server.submitting import priority_of_fork, request_within

router = agents_family("tasks")

_TASK = "/tasks/{task_id}"
TaskAdder = Annotated[Caller, allowed("tasks:add")]
TaskAnswerer = Annotated[Caller, allowed("tasks:answer")]


@router.post("/tasks", name="task.submit", status_code=202)
async def submit(
    request: Request,
    caller: TaskAdder,
    site: TheSite,
    body: TaskBody,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> SubmittedShown:
    """Have something done by an agent: checked, its credits set aside, and on its way to a worker."""
    tenant = tenant_to_charge(caller, body.tenant)
    note(request, tenant=tenant, task_type=body.task_type)
    wanted = await request_within(site, caller, tenant, body.request())
    sent = await site.agents.submit(wanted, tenant=tenant, created_by=caller.name, idempotency_key=idempotency_key)
    note(request, target=sent.run_id)
    return _shown(sent)


@router.get(_TASK)
async def task(caller: RunReader, site: TheSite, task_id: Name) -> TaskShown:
    """One task: what was asked, on what terms, and what came of it."""
    (shown,) = await shown_tasks(site, [await _task_of(site, caller, task_id)])
    return shown


@router.get(f"{_TASK}/steps")
async def steps(
    caller: RunReader,
    site: TheSite,
    task_id: Name,
    start: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> TaskSteps:
    """What it did, as its journal has it, by place: calls of models and of tools, answers of people, its end."""
    found = await _task_of(site, caller, task_id)
    page = await SqlJournal(site.records.database).read(found.id, start=start, limit=limit)
    return TaskSteps(items=[shown_step(site, entry) for entry in page.entries], next_place=page.next_place)


@router.get(f"{_TASK}/messages")
async def messages(
    caller: RunReader,
    site: TheSite,
    task_id: Name,
    start: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> TaskMessages:
    """All that was said: before it, by the model, by its tools."""
    said = await conversation(site.records.database, await _task_of(site, caller, task_id))
    end = start + limit
    return TaskMessages(
        items=[shown_message(site, message) for message in said[start:end]],
        next_start=end if len(said) > end else None,
    )


@router.get(f"{_TASK}/result")
async def result(caller: RunReader, site: TheSite, task_id: Name) -> ResultShown:
    """What came of it, however it ended."""
    found = await _task_of(site, caller, task_id)
    if found.outcome is None:
        raise WrongState(f"task {task_id!r} is {found.state}: it has no result yet")
    return shown_result(msgspec.json.decode(found.outcome, type=TaskResult))


@router.post(f"{_TASK}/answer", name="task.answer")
async def answer(request: Request, caller: TaskAnswerer, site: TheSite, task_id: Name, body: AnswerBody) -> Done:
    """Say what became of the call that it asks about, and let it go on."""
    found = await _task_of(site, caller, task_id)
    note(request, tenant=found.tenant, again=body.again)
    try:
        said = Answer(result=body.result, again=body.again, is_error=body.is_error)
    except ValueError:
        raise BadOption("result: either what came of the call, or `again`") from None
    await site.agents.answer(task_id, said, tenant=caller.tenant)
    return Done()


@router.post(f"{_TASK}/fork", name="task.fork", status_code=202)
async def fork(request: Request, caller: TaskAdder, site: TheSite, task_id: Name, body: ForkBody) -> ForkedShown:
    """A new run that has its first steps, with what is edited in them, and goes on from there."""
    found = await _task_of(site, caller, task_id)
    note(request, tenant=found.tenant, at=body.at, dry=body.dry)
    priority = await priority_of_fork(site, caller, found)
    sent = await site.agents.fork(
        task_id,
        at=body.at,
        prompt=body.prompt,
        edits=[Edit(one.place, one.text) for one in body.edits],
        dry=body.dry,
        priority=priority,
        tenant=caller.tenant,
        created_by=caller.name,
    )
    note(request, target=sent.run_id)
    return ForkedShown(**_shown(sent).model_dump(), note=sent.note)


def _shown(sent: Submitted) -> SubmittedShown:
    return SubmittedShown(
        task_id=sent.task_id,
        run_id=sent.run_id,
        status=sent.state,
        estimated_wait_seconds=sent.estimated_wait_s,
    )


async def _task_of(site: Site, caller: Caller, task_id: str) -> Task:
    """If it is the caller's to see; else the same RecordMissing as for one that never was."""
    return await site.records.runs.task(task_id, tenant=caller.tenant)
