"""The server as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from bullpen.agents.agents import Agents
from bullpen.app import Bullpen
from bullpen.errors import BullpenError
from bullpen.records.records import Records
from bullpen.server.describing import describe
from bullpen.server.envelope import Envelope
from bullpen.server.pages import add_pages
from bullpen.server.problems import Refused, answer_to
from bullpen.server.routes import ROUTERS
from bullpen.server.settings import ServerSettings
from bullpen.server.site import Site, opened_site
from bullpen.stores.base import Store


def create_app(
    store: Bullpen | Store | str | None = None,
    records: Records | str | None = None,
    settings: ServerSettings | None = None,
    *,
    agents: Agents | None = None,
    site: Site | None = None,
) -> FastAPI:
    """The server on this store and these records, or on those that the environment names.

    It opens both when it starts and closes them when it ends; an application that is given stays open, since others
    may work with it. Meanwhile it feeds the read model and relays the outbox of the records. With `agents` it takes
    tasks for these, whose tools and models it knows then, and stands on their store and records. A `site` that is
    given is somebody else's to open and close.
    """
    settings = settings or ServerSettings.from_environment()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        if site is not None:
            yield
            return
        async with opened_site(store, records, settings, agents=agents) as opened:
            app.state.site = opened
            yield

    app = FastAPI(
        title="Bullpen",
        version=version("bullpen"),
        lifespan=life,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.site = site
    app.add_middleware(Envelope)
    for kind in (BullpenError, Refused, RequestValidationError, WebSocketRequestValidationError, HTTPException):
        app.add_exception_handler(kind, _tell)  # type: ignore[arg-type]  # it is asked about WebSockets too
    for router in ROUTERS:
        # Flat, so that whoever walks `app.routes` meets each of them.
        app.router.routes.extend(router.routes)
    add_pages(app)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]  # FastAPI's own way to change it
    return app


async def _tell(connection: Request | WebSocket, error: Exception) -> Response | None:
    answer = answer_to(error, connection)
    if isinstance(connection, WebSocket):
        # Before it is accepted: the caller gets the same answer as over HTTP.
        await connection.send_denial_response(answer)
        return None
    return answer
