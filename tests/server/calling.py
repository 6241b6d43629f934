"""Calling a server that runs in the same loop."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from bullpen.records.keys import NewKey
from bullpen.server.app import create_app
from bullpen.server.site import Site

BASE = "http://127.0.0.1:8787"
OWN = {"X-Bullpen": "test"}

only_on_files = pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
"""For what does not depend on where anything is kept."""


class Client:
    """Calls, and checks what every answer has."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def call(self, method: str, path: str, *, status: int = 200, **sent: Any) -> Any:
        answer = await self.http.request(method, path, **sent)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        assert answer.headers["x-request-id"]
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            problem = answer.json()
            assert problem["type"] == f"https://bullpen.dev/errors/{problem['code']}"
            assert (problem["status"], problem["request_id"]) == (status, answer.headers["x-request-id"])
        return answer.json() if answer.content else None

    async def get(self, path: str, *, status: int = 200, **params: Any) -> Any:
        return await self.call("GET", path, status=status, params=params)

    async def post(self, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        return await self.call("POST", path, status=status, json={} if body is None else body, headers=headers)

    async def put(self, path: str, body: Any, *, status: int = 200) -> Any:
        return await self.call("PUT", path, status=status, json=body)

    async def delete(self, path: str, *, status: int = 200) -> Any:
        return await self.call("DELETE", path, status=status)


@contextlib.asynccontextmanager
async def client_of(site: Site, headers: Mapping[str, str] = OWN) -> AsyncIterator[Client]:
    transport = httpx.ASGITransport(app=create_app(site=site, settings=site.settings), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=dict(headers)) as http:
        yield Client(http)


async def key_for(site: Site, role: str, **scope: Any) -> dict[str, str]:
    """The header of a caller with a new key."""
    _, text = await site.records.keys.create(NewKey(name=role, role=role, **scope), created_by="test")
    return {"Authorization": f"Bearer {text}"}
