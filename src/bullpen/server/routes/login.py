"""Logging in with a password, and out."""

from fastapi import APIRouter, Response
from starlette.requests import Request

from bullpen.errors import BullpenError
from bullpen.records.users import SESSION_MS
from bullpen.server.access.allowing import MeReader
from bullpen.server.access.identifying import COOKIE, UNAUTHENTICATED, address_of
from bullpen.server.envelope import is_https
from bullpen.server.guarding import PublicRoute
from bullpen.server.models.access import Login, LoginShown
from bullpen.server.problems import Refused
from bullpen.server.routes.routing import TheSite, family

public = APIRouter(prefix="/v1", route_class=PublicRoute, tags=["me"])
router = family("me")


@public.post("/login", name="user.login")
async def login(request: Request, response: Response, site: TheSite, body: Login) -> LoginShown:
    """Begin a session, by a cookie that no script can read."""
    attempt = site.attempts.begin(body.name, address_of(request))
    try:
        found = await site.records.users.log_in(body.name, body.password)
    except BullpenError:
        site.attempts.take_back(attempt)
        raise
    actor = f"user:{body.name}"
    if found is None:
        await site.records.audit.note(actor, "user.login", body.name, outcome=UNAUTHENTICATED)
        raise Refused(UNAUTHENTICATED, "wrong name or password")
    site.attempts.take_back(attempt)
    session, token = found
    user = session.user
    await site.records.audit.note(actor, "user.login", user.name, tenant=user.tenant)
    response.set_cookie(
        COOKIE,
        token,
        max_age=SESSION_MS // 1000,
        httponly=True,
        samesite="strict",
        secure=is_https(request),
    )
    return LoginShown(
        name=user.name, role=user.role, tenant=user.tenant, csrf=session.csrf, expires_ms=session.expires_ms
    )


@router.post("/logout", name="user.logout", status_code=204)
async def logout(request: Request, caller: MeReader, site: TheSite) -> Response:
    """End the session."""
    if token := request.cookies.get(COOKIE):
        await site.records.users.log_out(token)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
