"""Runs of agents: lists, one with its tasks, what happens in it as it happens, and its end."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import msgspec
from fastapi import Header, Query, WebSocket
from starlette.requests import Request

from bullpen.errors import BadOption
from bullpen.records.runs.words import ProgressEvent, Run, TaskState
from bullpen.server.access.allowing import RunReader, allowed
from bullpen.server.access.caller import Caller
from bullpen.server.access.watching import Watch
from bullpen.server.guarding import note
from bullpen.server.models.base import Page
from bullpen.server.models.comparing import ComparisonShown
from bullpen.server.models.runs import (
    CancelShown,
    RunEvents,
    RunEventShown,
    RunRow,
    RunShown,
    shown_event,
    shown_result,
)
from bullpen.server.models.tasks import CancelBody
from bullpen.server.routes.filtering import tenant_of
from bullpen.server.routes.routing import Cursor, Name, Text, TheSite, agents_family
from bullpen.server.run_views import shown_comparison, shown_run, shown_runs
from bullpen.server.site import Site
from bullpen.server.streams.lookout import Heard
from bullpen.server.streams.sending import send_until_left
from bullpen.server.streams.sse import BEAT, EventStream

router = agents_family("runs")

_RUN = "/runs/{run_id}"
_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
_NUMBERS = 2**31
RunCanceller = Annotated[Caller, allowed("runs:cancel")]
After = Annotated[int, Query(ge=0, lt=_NUMBERS)]
_encode = msgspec.json.Encoder().encode


@router.get("/runs")
async def runs(
    caller: RunReader,
    site: TheSite,
    state: TaskState | None = None,
    tenant: Text = None,
    workspace: Text = None,
    is_asking: bool = False,
    q: Text = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Cursor = None,
) -> Page[RunRow]:
    """Runs by filter and words, the newest first, each with the beginning of what was asked.

    `is_asking`: those that ask a person.
    """
    page = await site.records.runs.page(
        tenant=tenant_of(caller, tenant),
        workspace=workspace,
        state=state,
        is_asking=is_asking,
        text=q,
        limit=limit,
        cursor=cursor,
    )
    return Page(items=await shown_runs(site, page.runs), next_cursor=page.cursor)


@router.get(_RUN)
async def run(caller: RunReader, site: TheSite, run_id: Name) -> RunShown:
    """One run with its tasks: what was asked, what a person is asked, what came of it, and what it may cost."""
    return await shown_run(site, await _run_of(site, caller, run_id))


@router.post(f"{_RUN}/cancel", name="run.cancel")
async def cancel(
    request: Request, caller: RunCanceller, site: TheSite, run_id: Name, body: CancelBody | None = None
) -> CancelShown:
    """End all its tasks, wherever they are; what they have not spent goes back."""
    found = await _run_of(site, caller, run_id)
    note(request, tenant=found.tenant)
    ended = await site.agents.cancel(run_id, tenant=caller.tenant, reason=body.reason if body else "")
    after = await _run_of(site, caller, run_id)
    return CancelShown(run_id=run_id, state=after.state, results=[shown_result(one) for one in ended])


@router.get(f"{_RUN}/compare")
async def compare(
    caller: RunReader,
    site: TheSite,
    run_id: Name,
    other: Annotated[str, Query(alias="with", min_length=1, max_length=200, pattern=r"^[^\x00]*$")],
    start: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> ComparisonShown:
    """Beside another run of the same tenant, such as a fork: where they part, and what each did there, by place."""
    found = await site.agents.compare(run_id, other, tenant=caller.tenant)
    return shown_comparison(site, found, start=start, limit=limit)


# ── what happens in it ───────────────────────────────────────────────────────────────────


@router.get(f"{_RUN}/events")
async def events(
    caller: RunReader,
    site: TheSite,
    run_id: Name,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
    wait_s: Annotated[float, Query(ge=0, le=30)] = 0,
) -> RunEvents:
    """What it told after this number, in order; with `wait_s` the first is waited for."""
    found = await _run_of(site, caller, run_id)
    _check_cursor(found, after)
    if wait_s and found.told == after and not found.state.is_final:
        async with contextlib.aclosing(site.lookout.heard(run_id, after, beat_s=wait_s)) as heard:
            await anext(heard, None)
        found = await _run_of(site, caller, run_id)
    items = await site.records.runs.events(run_id, after=after, limit=limit)
    cursor = items[-1].number if items else after
    is_over = found.state.is_final and cursor >= found.told
    shown = [RunEventShown(**shown_event(one)) for one in items]
    return RunEvents(items=shown, cursor=cursor, state=found.state, is_over=is_over)


@router.get(f"{_RUN}/stream", response_class=EventStream, responses=_STREAM)
async def follow(
    request: Request,
    caller: RunReader,
    site: TheSite,
    run_id: Name,
    after: After = 0,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> EventStream:
    """What it tells, from the beginning or after a number, to its end: server-sent events whose id is the number."""
    found = await _run_of(site, caller, run_id)
    after = after if last_event_id is None else _number_in(last_event_id)
    _check_cursor(found, after)
    return EventStream(_frames(site.lookout.heard(run_id, after), site.watches.watch(request, caller)))


async def _frames(hearing: AsyncGenerator[Heard, None], watch: Watch) -> AsyncGenerator[bytes, None]:
    yield BEAT  # the reader knows at once that it is heard
    async with contextlib.aclosing(hearing):
        async for heard in hearing:
            if not await watch.may_go_on():
                return
            yield b"".join(map(_frame, heard.events)) + _notes(heard) or BEAT


def _frame(event: ProgressEvent) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.number, event.kind.encode(), _encode(shown_event(event)))


def _notes(heard: Heard) -> bytes:
    """They have no id: whoever comes again goes on after the last event."""
    said = b""
    for name, words in _words_of(heard):
        said += b"event: %s\ndata: %s\n\n" % (name.encode(), _encode(words))
    return said


def _words_of(heard: Heard) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    if heard.behind is not None:
        found.append(("behind", {"events": heard.behind}))
    if heard.ended is not None:
        found.append(("end", {"state": heard.ended}))
    return found


@router.websocket(f"{_RUN}/ws", name="run.ws")
async def follow_by_socket(socket: WebSocket, caller: RunReader, site: TheSite, run_id: Name, after: After = 0) -> None:
    """The same by WebSocket: one JSON text for each event."""
    _check_cursor(await _run_of(site, caller, run_id), after)
    await socket.accept()
    sending = _send_all(socket, site.lookout.heard(run_id, after), site.watches.watch(socket, caller))
    is_over = await send_until_left(socket.receive, sending)
    with contextlib.suppress(RuntimeError):  # the caller was quicker
        await socket.close(1000 if is_over else 1001)


async def _send_all(socket: WebSocket, hearing: AsyncGenerator[Heard, None], watch: Watch) -> bool:
    """Whether the run is over."""
    async with contextlib.aclosing(hearing):
        async for heard in hearing:
            if not await watch.may_go_on():
                return False
            for event in heard.events:
                await socket.send_text(_encode(shown_event(event)).decode())
            for name, words in _words_of(heard):
                await socket.send_text(_encode({"kind": name, **words}).decode())
            if heard.ended is not None:
                return True
    return False


def _number_in(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < _NUMBERS):
        raise BadOption(f"after: the number of an event, not {text!r}")
    return int(text)


def _check_cursor(run: Run, after: int) -> None:
    if after > run.told:
        raise BadOption(f"after: {after} is in the future; the last event of the run is {run.told}")


async def _run_of(site: Site, caller: Caller, run_id: str) -> Run:
    """If it is the caller's to see; else the same RecordMissing as for one that never was."""
    return await site.records.runs.get(run_id, tenant=caller.tenant)
