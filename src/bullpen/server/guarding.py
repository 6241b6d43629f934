"""The routes of `/v1`: each knows who calls, how large a body may be, and what its writes leave behind.

A write is carried out once for an `Idempotency-Key`, and is told in the audit log under the name of
its route.
"""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Message, Receive

from bullpen.errors import BadOption, BullpenError
from bullpen.records.files.sizes import check_size
from bullpen.records.idempotency import Answer
from bullpen.server.access.caller import Caller
from bullpen.server.access.identifying import SAFE
from bullpen.server.problems import Refused, answer_to
from bullpen.server.site import Site, site_of

logger = logging.getLogger("bullpen.server")

Handle = Callable[[Request], Awaitable[Response]]
IDEMPOTENCY_KEY = "idempotency-key"
REPLAYED = "Idempotent-Replayed"
BULK = "bulk"
"""The tag of routes that take many jobs at once."""
_MAX_KEY = 200
_HOLD_EVERY_S = 20.0
"""A key that nobody holds is free after a minute."""
_SMALL = 16_384
"""For those of whom nothing is known yet."""


class PublicRoute(APIRoute):
    """A route for whoever comes."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle: Handle = super().get_route_handler()

        async def public(request: Request) -> Response:
            return await handle(_narrow(request, _SMALL))

        return public


class GuardedRoute(APIRoute):
    """A route for callers who say who they are."""

    leaves_trace = True
    """Whether writes go to the audit log, and are carried out once for an idempotency key."""
    is_of_agents = False
    takes_file = False
    """Whether its body is a file, of any size that files may have: it is read in parts, by the route itself."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle: Handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            site = site_of(request)
            if self.is_of_agents:
                of_agents(request)
            limit = site.settings.bulk_limit if BULK in self.tags else site.settings.body_limit
            request = request if self.takes_file else _narrow(request, limit)
            caller = request.state.caller = await site.access.identify(request)
            if request.method in SAFE or not self.leaves_trace:
                return await handle(request)
            return await _write(site, caller, self.name, request, handle, reads_body=not self.takes_file)

        return guarded


class AgentsRoute(GuardedRoute):
    """A route whose errors are told as those of agents."""

    is_of_agents = True


class UploadRoute(AgentsRoute):
    """A route that takes a file."""

    takes_file = True


def of_agents(connection: HTTPConnection) -> None:
    """What goes wrong from here on is told as agents tell it; a WebSocket has no route of ours around it."""
    connection.state.of_agents = True


def note(request: Request, *, target: str | None = None, tenant: str | None = None, **details: Any) -> None:
    """What the audit log is to say of this write beyond its route and path: no payloads, no secrets."""
    state = request.state
    if target is not None:
        state.target = target
    if tenant is not None:
        state.tenant = tenant
    state.details = getattr(state, "details", {}) | details


def replay(request: Request, body: bytes) -> None:
    """What to answer when the same idempotency key comes again, where the first answer holds a secret."""
    request.state.replay = body


async def _write(
    site: Site, caller: Caller, action: str, request: Request, handle: Handle, *, reads_body: bool
) -> Response:
    key = request.headers.get(IDEMPOTENCY_KEY)
    if key is None:
        return await _noted(site, caller, action, request, handle)
    if not 0 < len(key) <= _MAX_KEY:
        raise BadOption(f"Idempotency-Key: a text of 1 to {_MAX_KEY} characters")
    passing = None if reads_body else _Passing(request)
    asked = await _digest(request, reads_body)
    known = await site.records.idempotency.begin(
        caller.scope, key, asked, whole=None if passing is None else passing.read
    )  # fmt: skip
    if known is not None:
        return Response(known.body, known.status, {REPLAYED: "true"}, known.content_type or None)
    try:
        async with _held(site, caller.scope, key):
            answer = await _noted(site, caller, action, request if passing is None else passing.request, handle)
    except BaseException:
        await _keep(site, caller, key, None)
        raise
    kept = None
    if answer.status_code < 400:
        body = getattr(request.state, "replay", bytes(answer.body))
        kept = Answer(answer.status_code, body, answer.media_type or "application/json")
    await _keep(site, caller, key, kept, whole=None if passing is None else passing.digest())
    return answer


async def _keep(site: Site, caller: Caller, key: str, answer: Answer | None, *, whole: str | None = None) -> None:
    """Remember the answer under the key; with none, which is where nothing was done, let the key go."""
    try:
        if answer is None:
            await site.records.idempotency.give_up(caller.scope, key)
        else:
            await site.records.idempotency.finish(caller.scope, key, answer, request=whole)
    except (BullpenError, SQLAlchemyError):
        # It is done, or refused: a caller who is told otherwise would ask again, and it would be done twice.
        logger.exception("an idempotency key of %s has no answer; it is free again in a minute", caller.name)


@contextlib.asynccontextmanager
async def _held(site: Site, scope: str, key: str) -> AsyncIterator[None]:
    """The key stays taken while it is carried out: who asks again meanwhile must not begin it a second time."""

    async def hold() -> None:
        while True:
            await asyncio.sleep(_HOLD_EVERY_S)
            try:
                await site.records.idempotency.hold(scope, key)
            except (BullpenError, SQLAlchemyError):
                logger.warning("an idempotency key could not be held, trying again", exc_info=True)

    # Owned by this block: ended at its end.
    holding = asyncio.create_task(hold(), name="idempotency key")
    try:
        yield
    finally:
        holding.cancel()
        await asyncio.wait([holding])


async def _noted(site: Site, caller: Caller, action: str, request: Request, handle: Handle) -> Response:
    """Carry it out, and tell the audit log how it ended."""
    outcome = "ok"
    try:
        answer = await handle(request)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        answer = answer_to(error, request)
        outcome = error.code if isinstance(error, BullpenError | Refused) else str(answer.status_code)
    state = request.state
    try:
        await site.records.audit.note(
            caller.name,
            action,
            getattr(state, "target", None) or "/".join(map(str, request.path_params.values())),
            tenant=caller.tenant or getattr(state, "tenant", None),
            outcome=outcome,
            details={"request_id": state.request_id} | getattr(state, "details", {}),
        )
    except (BullpenError, SQLAlchemyError):
        # It is done, or refused: an answer that says otherwise would be worse than a hole in the log.
        logger.exception("the audit log has no entry for %s of %s", action, caller.name)
    return answer


async def _digest(request: Request, reads_body: bool) -> str:
    return hashlib.sha256(_asked(request) + (await request.body() if reads_body else b"")).hexdigest()


def _asked(request: Request) -> bytes:
    return f"{request.method} {request.url.path}?{request.url.query}\n".encode()


class _Passing:
    """A body that is too large to be read before it is taken: its digest is made as it passes."""

    def __init__(self, request: Request) -> None:
        self.request = Request(request.scope, self._receive, request._send)  # noqa: SLF001 - it has no public name
        self._receive_next = request.receive
        self._size = 0
        self._digest = hashlib.sha256(_asked(request) + request.headers.get("content-type", "").encode() + b"\n")

    async def _receive(self) -> Message:
        message = await self._receive_next()
        self._digest.update(message.get("body", b""))
        self._size += len(message.get("body", b""))
        return message

    async def read(self) -> str:
        """All of it, for its digest alone. PayloadTooLarge."""
        async for _ in self.request.stream():
            check_size(self._size)
        return self.digest()

    def digest(self) -> str:
        """Of what has passed."""
        return self._digest.hexdigest()


def _narrow(request: Request, limit: int) -> Request:
    """The same request, whose body must not be larger than that."""
    return Request(request.scope, _limited(request.receive, limit), request._send)  # noqa: SLF001 - it has no public name


def _limited(receive: Receive, limit: int) -> Receive:
    """The body, until it is too large."""
    received = 0

    async def receiving() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            # FastAPI lets no other error through from where it reads a body.
            raise HTTPException(413, f"a body has at most {limit:,} bytes here")
        return message

    return receiving
