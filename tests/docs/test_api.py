"""The page about the HTTP API has each route, permission and code, as the server has them."""

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute

from bullpen.server import create_app
from bullpen.server.access.allowing import Allowed
from bullpen.server.access.roles import PERMISSIONS, ROLES
from bullpen.server.problems import REFUSALS
from tests.docs.pages import REFERENCE, rows, section

_PAGE = REFERENCE / "api.md"
_TWICE = ("/v1/health", "/v1/metrics")
"""Served at a shorter path too, which is the one that is told."""


def _allowed(dependant: Dependant) -> Allowed | None:
    for one in dependant.dependencies:
        found = one.call if isinstance(one.call, Allowed) else _allowed(one)
        if found is not None:
            return found
    return None


def _permission(allowed: Allowed | None) -> str:
    if allowed is None:
        return "anyone"
    return f"`{allowed.permission}`, all tenants" if allowed.whole else f"`{allowed.permission}`"


def test_every_route_has_its_line_with_its_permission() -> None:
    found = {}
    for route in create_app("sqlite:unused.db", "sqlite:unused.db").routes:
        if isinstance(route, APIWebSocketRoute):
            found[f"WS {route.path}"] = _permission(_allowed(route.dependant))
        elif isinstance(route, APIRoute) and not route.path.startswith((*_TWICE, "/{path")):
            for method in route.methods or ():
                found[f"{method} {route.path}"] = _permission(_allowed(route.dependant))
    assert {row[0]: row[1] for row in rows(section(_PAGE, "## Routes"))} == found


def test_every_permission_has_its_line_with_the_roles() -> None:
    told = {row[0]: [cell == "yes" for cell in row[2:]] for row in rows(section(_PAGE, "## Permissions"))}
    assert told == {word: [word in ROLES[role] for role in ROLES] for word in PERMISSIONS}


def test_every_code_of_the_server_has_its_line() -> None:
    told = {row[0]: int(row[1]) for row in rows(section(_PAGE, "## Errors"))}
    assert told == {code: status for code, (status, _) in REFUSALS.items()}
