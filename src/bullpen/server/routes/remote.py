"""Working on jobs over HTTP: for `bullpen agent`, for RemoteWorker, and for programs in any language.

These calls leave no trace in the audit log, which they would fill: who ran a job is on the job, and in the
events of its queue. Each may be made again: the store remembers its `request`.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from bullpen.remote import messages
from bullpen.remote.messages import encode
from bullpen.remote.settling import SettleAnswer, SettleAsk
from bullpen.server.access.allowing import RemoteWorker
from bullpen.server.guarding import GuardedRoute
from bullpen.server.problems import Refused
from bullpen.server.relatives import without_strangers
from bullpen.server.routes.routing import TheSite

Asked = TypeVar("Asked")
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


_KINDS = (
    messages.ClaimAsk, messages.ClaimAnswer, messages.WaitAsk, messages.WaitAnswer, messages.HeartbeatAsk,
    messages.HeartbeatAnswer, messages.NoticesAsk, messages.NoticesAnswer, messages.ProgressAsk, messages.Nothing,
    messages.LogAsk, messages.LogAnswer, messages.StepAsk, messages.StepAnswer, SettleAsk, SettleAnswer,
)  # fmt: skip
_refs, _schemas = msgspec.json.schema_components(_KINDS, ref_template="#/components/schemas/Remote{name}")
_REF: dict[type, dict[str, Any]] = dict(zip(_KINDS, _refs, strict=True))
SCHEMAS = {f"Remote{name}": schema for name, schema in _schemas.items()}
"""For the OpenAPI description, which finds no types but Pydantic's by itself."""


class WorkRoute(GuardedRoute):
    leaves_trace = False


router = APIRouter(prefix="/v1/remote", route_class=WorkRoute, tags=["remote"])


def _reading(kind: type[Asked]) -> Any:
    """The body, read strictly: a dependency."""
    decode = msgspec.json.Decoder(kind).decode

    async def read(request: Request) -> Asked:
        try:
            return decode(await request.body())
        except msgspec.DecodeError as error:
            raise _refusal_of(error) from error

    return Depends(read)


def _refusal_of(error: msgspec.DecodeError) -> Refused:
    """Where it is wrong: `Object missing required field …`, `Expected …, got … - at `$.queues``."""
    said, _, place = str(error).partition(" - at `$.")
    field = place.rstrip("`") or None
    return Refused("bad-request", f"{field}: {said}" if field else said, field=field)


def _call(verb: str, ask: type, answer: type) -> Callable[[Endpoint], Endpoint]:
    """A route, with what the OpenAPI description is to say of its body and its answer."""
    body = {"content": {"application/json": {"schema": _REF[ask]}}, "required": True}
    answers: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {"schema": _REF[answer]}}}}
    return router.post(f"/{verb}", openapi_extra={"requestBody": body}, responses=answers)


def _answer(value: object) -> Response:
    return Response(encode(value), media_type="application/json")


@_call("claim", messages.ClaimAsk, messages.ClaimAnswer)
async def claim(
    request: Request,
    caller: RemoteWorker,
    site: TheSite,
    ask: Annotated[messages.ClaimAsk, _reading(messages.ClaimAsk)],
) -> Response:
    """Take jobs to run, waiting up to `wait_s` for the first; the same `request` again gets the same jobs."""
    async with site.desk.watch(request) as presence:
        claimed = await site.desk.claim(caller, ask, presence)
        return _answer(messages.ClaimAnswer(await without_strangers(site.store, caller, claimed.jobs)))


@_call("wait", messages.WaitAsk, messages.WaitAnswer)
async def wait(
    request: Request, caller: RemoteWorker, site: TheSite, ask: Annotated[messages.WaitAsk, _reading(messages.WaitAsk)]
) -> Response:
    """Wait until one of the queues may have something to run; takes nothing."""
    async with site.desk.watch(request) as presence:
        return _answer(await site.desk.wait(caller, ask, presence))


@_call("heartbeat", messages.HeartbeatAsk, messages.HeartbeatAnswer)
async def heartbeat(
    caller: RemoteWorker, site: TheSite, ask: Annotated[messages.HeartbeatAsk, _reading(messages.HeartbeatAsk)]
) -> Response:
    """Extend leases, and learn of each whether it is held, lost, or its job is to stop."""
    return _answer(await site.desk.heartbeat(caller, ask))


@_call("notices", messages.NoticesAsk, messages.NoticesAnswer)
async def notices(
    request: Request,
    caller: RemoteWorker,
    site: TheSite,
    ask: Annotated[messages.NoticesAsk, _reading(messages.NoticesAsk)],
) -> Response:
    """Which jobs of a worker are to stop, waiting up to `wait_s` for the first."""
    async with site.desk.watch(request) as presence:
        return _answer(await site.desk.notices(caller, ask, presence))


@_call("progress", messages.ProgressAsk, messages.Nothing)
async def progress(
    caller: RemoteWorker, site: TheSite, ask: Annotated[messages.ProgressAsk, _reading(messages.ProgressAsk)]
) -> Response:
    """Say how far a job is."""
    return _answer(await site.desk.progress(caller, ask))


@_call("log", messages.LogAsk, messages.LogAnswer)
async def log(
    caller: RemoteWorker, site: TheSite, ask: Annotated[messages.LogAsk, _reading(messages.LogAsk)]
) -> Response:
    """Add lines to a job's log."""
    return _answer(await site.desk.log(caller, ask))


@_call("step", messages.StepAsk, messages.StepAnswer)
async def step(
    caller: RemoteWorker, site: TheSite, ask: Annotated[messages.StepAsk, _reading(messages.StepAsk)]
) -> Response:
    """Record durable steps, take a signal, or read what is recorded."""
    return _answer(await site.desk.step(caller, ask))


@_call("settle", SettleAsk, SettleAnswer)
async def settle(caller: RemoteWorker, site: TheSite, ask: Annotated[SettleAsk, _reading(SettleAsk)]) -> Response:
    """Say how attempts ended; the same `request` again does nothing and gets the first answer."""
    return _answer(await site.desk.settle(caller, ask))
