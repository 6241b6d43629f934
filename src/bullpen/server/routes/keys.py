"""API keys and users: who may come in."""

from typing import Annotated

import msgspec
from fastapi import Response
from starlette.requests import Request

from bullpen.errors import RecordMissing
from bullpen.records.keys import NewKey
from bullpen.records.users import User
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.access.roles import ROLES
from bullpen.server.guarding import note, replay
from bullpen.server.models.base import Done, Page
from bullpen.server.models.records import KeyBody, KeyShown, NewKeyShown, PasswordBody, UserBody, UserChange, UserShown
from bullpen.server.problems import forbidden
from bullpen.server.routes.routing import Cursor, Limit, Name, TheSite, family

router = family("access")

KeyReader = Annotated[Caller, allowed("keys:read")]
KeyWriter = Annotated[Caller, allowed("keys:write")]
UserReader = Annotated[Caller, allowed("users:read")]
UserWriter = Annotated[Caller, allowed("users:write")]


def _tenant_for(caller: Caller, asked: str | None) -> str | None:
    if caller.tenant is not None and asked not in (None, caller.tenant):
        raise forbidden("tenant: the caller lets others in for its own only")
    return caller.tenant or asked


def _own_name(tenant: str | None, name: str) -> str:
    """Apart from the users of others: a tenant is not told that somebody else has taken a name."""
    return name if tenant is None or name.startswith(f"{tenant}/") else f"{tenant}/{name}"


@router.get("/keys")
async def keys(caller: KeyReader, site: TheSite, limit: Limit = 100, cursor: Cursor = None) -> Page[KeyShown]:
    """All API keys, the newest first; never their text."""
    page = await site.records.keys.list(tenant=caller.tenant, limit=limit, cursor=cursor)
    return Page(items=[KeyShown.model_validate(key) for key in page.items], next_cursor=page.next_cursor)


@router.post("/keys", name="key.create", status_code=201)
async def create_key(request: Request, caller: KeyWriter, site: TheSite, body: KeyBody) -> NewKeyShown:
    """Make an API key. Its text is in this answer and nowhere else."""
    new = NewKey(
        name=body.name,
        role=body.role,
        tenant=_tenant_for(caller, body.tenant),
        queues=body.queues,
        expires_ms=body.expires_ms,
    )
    key, text = await site.records.keys.create(new, created_by=caller.name)
    note(request, target=key.id, tenant=key.tenant, name=key.name, role=key.role)
    shown = NewKeyShown.model_validate(msgspec.structs.asdict(key) | {"queues": body.queues, "text": text})
    replay(request, shown.model_copy(update={"text": None}).model_dump_json().encode())
    return shown


@router.delete("/keys/{key_id}", name="key.revoke", status_code=204)
async def revoke_key(request: Request, caller: KeyWriter, site: TheSite, key_id: Name) -> Response:
    """Let nobody in with this key any more."""
    missing = RecordMissing(f"no API key {key_id!r}")
    try:
        key = await site.records.keys.get(key_id)
    except RecordMissing:
        raise missing from None
    if not caller.sees_tenant(key.tenant):
        raise missing
    note(request, tenant=key.tenant)
    await site.records.keys.revoke(key_id)
    return Response(status_code=204)


@router.get("/users")
async def users(caller: UserReader, site: TheSite, limit: Limit = 100, cursor: Cursor = None) -> Page[UserShown]:
    """All users, by name."""
    page = await site.records.users.list(tenant=caller.tenant, limit=limit, cursor=cursor)
    return Page(items=[UserShown.model_validate(user) for user in page.items], next_cursor=page.next_cursor)


@router.post("/users", name="user.create", status_code=201)
async def create_user(request: Request, caller: UserWriter, site: TheSite, body: UserBody) -> UserShown:
    """Make a user who may log in, by the name in the answer: one that a tenant makes is named `TENANT/NAME`."""
    tenant = _tenant_for(caller, body.tenant)
    name = _own_name(caller.tenant, body.name)
    user = await site.records.users.create(name, body.password, role=body.role, tenant=tenant)
    note(request, target=user.id, tenant=user.tenant, name=user.name, role=user.role)
    return UserShown.model_validate(user)


@router.patch("/users/{user_id}", name="user.change")
async def change_user(
    request: Request, caller: UserWriter, site: TheSite, user_id: Name, body: UserChange
) -> UserShown:
    """Give a user another role, let one in no more or again; what changes ends all sessions of the user."""
    before = await _user(site, caller, user_id)
    note(request, tenant=before.tenant, **body.model_dump(exclude_none=True))
    if not ROLES[body.role or before.role] <= caller.permissions:
        raise forbidden("role: the caller gives no more than it has")
    return UserShown.model_validate(
        await site.records.users.change(user_id, role=body.role, is_disabled=body.is_disabled)
    )


@router.post("/users/{user_id}/password", name="user.password")
async def set_password(request: Request, caller: UserWriter, site: TheSite, user_id: Name, body: PasswordBody) -> Done:
    """Give a user another password, and end all sessions."""
    note(request, tenant=(await _user(site, caller, user_id)).tenant)
    await site.records.users.set_password(user_id, body.password)
    return Done()


@router.post("/users/{user_id}/disable", name="user.disable")
async def disable(request: Request, caller: UserWriter, site: TheSite, user_id: Name) -> Done:
    """Let a user in no more, and end all sessions."""
    note(request, tenant=(await _user(site, caller, user_id)).tenant)
    await site.records.users.change(user_id, is_disabled=True)
    return Done()


async def _user(site: TheSite, caller: Caller, user_id: str) -> User:
    """RecordMissing also if it is not the caller's to see."""
    user = await site.records.users.get(user_id)
    if not caller.sees_tenant(user.tenant):
        raise RecordMissing(f"no user {user_id!r}")
    return user
