"""From a request to a task on its way: checked, priced, and written in one transaction with its job and its credits."""

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec.structs import FieldInfo
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.kinds import Route, TaskKind, estimate, kind_of, route, urgency_of, usual_tools
from bullpen.agents.llm.models import Model, ModelTable
from bullpen.agents.llm.prices import micro
from bullpen.agents.llm.words import MAX_TOKENS, Request, check_request, check_tool_names, user
from bullpen.agents.sandbox.asking import check_asked, usual_spec
from bullpen.agents.sandbox.limits import SandboxSpec
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.agents.words import MAX_PROMPT, MOST_TOKENS, Submitted, TaskRequest, TaskTerms
from bullpen.errors import BadOption, RecordMissing
from bullpen.job.checks import check_whole
from bullpen.job.names import is_text
from bullpen.job.spec import NewJob
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.credits import purse
from bullpen.records.credits.ledger import Ledger
from bullpen.records.files.on import FilesOn
from bullpen.records.records import Records
from bullpen.records.runs.keys import RunKey, find, keep
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import TaskState

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_LONGEST_S = 7 * 86_400
_MOST_METADATA = 50
_LONGEST_NAME = 200
_WIDEST = 50
"""Agents of one research."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was found good."""

    kind: TaskKind
    prompt: str
    route: Route
    terms: TaskTerms


def prepare(
    request: TaskRequest,
    tenant: str,
    *,
    models: ModelTable,
    tools: Toolbox | None,
    usual_model: str,
    sandbox: SandboxSpec | None = None,
) -> Prepared:
    """BadOption, which names the field, or ModelUnknown. Nothing is written. Without tools only workers know them."""
    check_prompt(request.prompt)
    kind = kind_of(request.task_type)
    way = route(kind, None if request.priority is None else urgency_of(request.priority))
    model = models.model(request.model or usual_model)
    expected = micro(estimate(kind, request.prompt))
    terms = TaskTerms(
        model=model.name,
        workspace=_workspace(request),
        system=request.system,
        history=request.history,
        files=request.files,
        tools=_tools_for(kind, request, tools),
        sandbox=check_asked(request.sandbox, sandbox or usual_spec()),
        temperature=request.temperature,
        reply_tokens=_reply_tokens(request, model),
        steps=_whole("max_steps", request.max_steps, 1, 10_000),
        tool_calls=_whole("max_tool_calls", request.max_tool_calls, 0, 100_000),
        tokens=_tokens(request),
        timeout_s=_seconds(request.timeout, way),
        attempts=way.attempts,
        priority=way.priority,
        stream=request.stream,
        questions=_questions(request, kind),
        width=_whole("width", request.width, 1, _WIDEST),
        needs_answers=_needs(request),
        metadata=_metadata(request),
        estimate=expected,
        most=_most(request, expected),
        payer=purse(tenant),
    )
    _check_conversation(terms, request.prompt)
    return Prepared(kind=kind, prompt=request.prompt, route=way, terms=terms)


def check_prompt(prompt: str) -> str:
    if not prompt.strip():
        raise BadOption("prompt: a text that is not empty")
    if len(prompt) > MAX_PROMPT:
        raise BadOption(f"prompt: at most {MAX_PROMPT:,} characters, not {len(prompt):,}")
    if "\0" in prompt:
        raise BadOption("prompt: has a character that no text has")
    return prompt


def _tools_for(kind: TaskKind, request: TaskRequest, tools: Toolbox | None) -> tuple[str, ...] | None:
    if tools is None:
        return None if request.tools is None else check_tool_names(request.tools)
    there = [tool.name for tool in tools]
    if request.tools is not None:
        tools.allowed(request.tools)  # BadOption names one that is not there
        return tuple(dict.fromkeys(request.tools))
    return usual_tools(kind, there)


def _workspace(request: TaskRequest) -> str | None:
    name = request.workspace
    if name is not None and (not is_text(name) or len(name) > _LONGEST_NAME or "\0" in name):
        raise BadOption(f"workspace: a text of 1 to {_LONGEST_NAME} characters, not {name!r}")
    return name


def _reply_tokens(request: TaskRequest, model: Model) -> int:
    if request.max_tokens is None:
        return min(MAX_TOKENS, model.max_output)
    return _whole("max_tokens", request.max_tokens, 1, model.max_output)


def _tokens(request: TaskRequest) -> int:
    if request.max_total_tokens is None:
        return MOST_TOKENS
    return _whole("max_total_tokens", request.max_total_tokens, 1, MOST_TOKENS)


def _questions(request: TaskRequest, kind: TaskKind) -> tuple[str, ...]:
    if request.questions and kind is not TaskKind.WIDE_RESEARCH:
        raise BadOption(f"questions: are for wide_research, not for {kind}")
    if len(request.questions) > _WIDEST:
        raise BadOption(f"questions: at most {_WIDEST}, not {len(request.questions)}")
    for n, question in enumerate(request.questions):
        if not question.strip() or len(question) > MAX_PROMPT:
            raise BadOption(f"questions[{n}]: a text that is not empty, of at most {MAX_PROMPT:,} characters")
    return request.questions


def _needs(request: TaskRequest) -> int | None:
    if request.needs_answers is None:
        return None
    return _whole("needs_answers", request.needs_answers, 1, len(request.questions) or request.width)


def _whole(option: str, value: int, low: int, high: int) -> int:
    check_whole(option, value, low, high)
    return value


def _seconds(asked: float | None, way: Route) -> float:
    if asked is None:
        return way.timeout_s
    if not 0 < asked <= _LONGEST_S:
        raise BadOption(f"timeout: more than 0 and at most {_LONGEST_S:,} seconds, not {asked:g}")
    return asked


def _most(request: TaskRequest, expected: int) -> int:
    if request.max_credits is None:
        return 2 * expected
    most = micro(_whole("max_credits", request.max_credits, 1, 1_000_000_000))
    if most < expected:
        raise BadOption(
            f"max_credits: at least the estimate, {expected // micro(1)} credits, not {request.max_credits}"
        )
    return most


def _metadata(request: TaskRequest) -> dict[str, str]:
    if len(request.metadata) > _MOST_METADATA:
        raise BadOption(f"metadata: at most {_MOST_METADATA} fields, not {len(request.metadata)}")
    return request.metadata


def _check_conversation(terms: TaskTerms, prompt: str) -> None:
    """What no model could be asked is refused now, not by a worker."""
    messages = (*terms.history, user(prompt))
    check_request(Request(model=terms.model, messages=messages, temperature=terms.temperature))


async def write(
    connection: AsyncConnection,
    records: Records,
    prepared: Prepared,
    *,
    tenant: str,
    created_by: str,
    job: NewJob,
    key: RunKey | None = None,
) -> tuple[str, str]:
    """Run, key, task, files, credits and outbox: all or none. RecordMissing without a purse or a file; CreditsShort.

    IntegrityError if the key is another run's.
    """
    database = records.database
    run_id, task_id = f"run_{secrets.token_hex(10)}", str(job.id)
    runs = RunsOn(connection, database)
    workspace = prepared.terms.workspace
    await runs.create(run_id, tenant, created_by=created_by, workspace=workspace, state=TaskState.QUEUED)
    if key is not None:  # before the credits: the same request again finds its run, not that it cannot pay for another
        await keep(connection, key, run_id)
    if prepared.terms.files:
        files = FilesOn(connection, database, records.files.blobs)
        await files.attach(run_id, prepared.terms.files, tenant=tenant)
    await add_task(runs, Ledger(connection, database), prepared, run_id=run_id, tenant=tenant, job=job)
    return run_id, task_id


async def add_task(
    runs: RunsOn,
    ledger: Ledger,
    prepared: Prepared,
    *,
    run_id: str,
    tenant: str,
    job: NewJob,
    parent: str | None = None,
) -> None:
    """A task of a run that is there, with its credits and its job."""
    terms, task_id = prepared.terms, str(job.id)
    await runs.create_task(
        run_id,
        task_id,
        tenant=tenant,
        kind=prepared.kind,
        queue=prepared.route.queue,
        prompt=prepared.prompt,
        terms=_encode(terms),
        parent=parent,
        state=TaskState.QUEUED,
    )
    budget = Budget(task=task_id, tenant=tenant, payer=terms.payer, most=terms.most)
    try:
        await budget.open(ledger, terms.estimate)
    except RecordMissing as missing:
        raise RecordMissing(f"tenant: {tenant!r} has no credits; deposit some first") from missing
    await runs.send(job)


def key_of(request: TaskRequest, key: str, *, tenant: str, created_by: str) -> RunKey:
    digest = hashlib.sha256(_encode_sorted(_told_in(request))).hexdigest()
    return RunKey(tenant=tenant, created_by=created_by, key=key, request=digest)


def _told_in(value: Any) -> Any:
    """Without what is as it would be anyway: a field that a later version knows must not make it another request."""
    if isinstance(value, msgspec.Struct):
        given = {field.name: (getattr(value, field.name), field) for field in msgspec.structs.fields(value)}
        return {name: _told_in(one) for name, (one, field) in given.items() if one != _default_of(field)}
    return [_told_in(one) for one in value] if isinstance(value, tuple) else value


def _default_of(field: FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


async def once(records: Records, key: RunKey, submit: Callable[[], Awaitable[Submitted]]) -> Submitted:
    """The run that the key stands for, submitted before or now. IdempotencyConflict."""
    known = await find(records.database, key)
    if known is None:
        try:
            return await submit()
        except IntegrityError:
            # Somebody else asks for it at this moment.
            known = await find(records.database, key)
            if known is None:
                raise
    return Submitted(run_id=known.run, task_id=known.task, state=known.state, estimated_wait_s=None)


def new_task_id() -> str:
    return f"task_{secrets.token_hex(10)}"
