"""The description and the server agree: whatever is asked, the answer is one that is documented."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bullpen import SqliteStore
from bullpen.records.keys import NewKey
from bullpen.records.records import Records
from bullpen.server.app import create_app
from bullpen.server.settings import ServerSettings
from tests.server.running import running
from tests.support.migrated import migrated_database
from tests.support.places import ServerPlace
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

_CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
_STREAMS = {"/v1/events", "/v1/live", "/v1/runs/{run_id}/stream"}
"""They have no end; `test_streams.py` reads them."""
_HEALTH = {"/health", "/health/ready"}
"""503 is their way to say that something is not well."""
_SETTINGS = ServerSettings(port=0, delivers=False)


@pytest.fixture(scope="module")
def on_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Its address, and an admin's key."""
    folder: Path = tmp_path_factory.mktemp("server")
    address = f"sqlite:{folder / 'records.db'}"
    key = asyncio.run(_new_key(address))
    with running(SqliteStore(folder / "queue.db"), address, _SETTINGS) as url:
        yield url, key


@pytest.fixture(scope="module")
def on_servers(redis_server: RedisServer, postgres_server: PostgresServer) -> Iterator[tuple[str, str]]:
    """The same beside Redis and PostgreSQL, which refuse what files keep: NUL, and texts that are too long."""
    place = ServerPlace(redis_server.url)
    address = migrated_database(postgres_server)
    key = asyncio.run(_new_key(address))
    with running(place.store(), address, _SETTINGS) as url:
        yield url, key
    place.clear()


async def _new_key(address: str) -> str:
    async with await Records.open(address) as records:
        _, text = await records.keys.create(NewKey(name="test", role="admin"), created_by="test")
    return text


def _schema() -> schemathesis.schemas.BaseSchema:
    app = create_app("sqlite:unused.db", "sqlite:unused.db", ServerSettings(port=0))
    return schemathesis.openapi.from_dict(app.openapi())


_SCHEMA = _schema()
_RUNS = [
    ("on_files", 5),
    ("on_servers", 3),
    pytest.param("on_files", 50, marks=pytest.mark.soak),
    pytest.param("on_servers", 50, marks=pytest.mark.soak),
]
_WAITING = {f"/v1/remote/{name}" for name in ("claim", "wait", "notices")}
_OPERATIONS: list[Any] = [operation.ok() for operation in _SCHEMA.get_all_operations()]  # type: ignore[union-attr]  # all are


# The server's thread draws its pauses by chance while requests are made up in ours.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module:hypothesis.errors.HypothesisDeprecationWarning")
@pytest.mark.parametrize("kept, requests", _RUNS)
@pytest.mark.parametrize("operation", _OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_no_request_brings_it_down(operation: Any, requests: int, kept: str, request: pytest.FixtureRequest) -> None:
    """Well-formed and ill-formed requests alike, to every operation."""
    if operation.path in _STREAMS:
        return
    url, key = request.getfixturevalue(kept)
    headers = {"Authorization": f"Bearer {key}"}
    checks = [check for check in _CHECKS if check is not not_a_server_error or operation.path not in _HEALTH]
    strategies = [operation.as_strategy(), operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)]

    @given(case=st.one_of(*strategies))
    @settings(
        max_examples=requests,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        if operation.path in _WAITING and isinstance(case.body, dict):
            case.body.setdefault("wait_s", 0)  # unless told, as long as may be
        case.call_and_validate(base_url=url, headers=headers, checks=checks, timeout=90)

    ask()


def test_every_route_of_the_api_is_described() -> None:
    """But for WebSockets, which OpenAPI does not know."""
    app = create_app("sqlite:unused.db", "sqlite:unused.db", ServerSettings(port=0))
    described = {(method.upper(), path) for path, found in app.openapi()["paths"].items() for method in found}
    shown = {
        (method, str(getattr(route, "path", "")))
        for route in app.routes
        if getattr(route, "include_in_schema", False)
        for method in getattr(route, "methods", None) or ()
    }
    assert described == shown
    for path in app.openapi()["paths"].values():
        for operation in path.values():
            assert operation["description"]
            assert {"401", "403", "404", "422", "503"} <= operation["responses"].keys()
