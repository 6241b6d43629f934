"""People who log in to the dashboard, and their sessions."""

import hashlib
import secrets
import uuid
from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BadOption, LastAdmin, RecordMissing, RecordTaken
from bullpen.records.database import Database
from bullpen.records.keys import Role
from bullpen.records.paging import Page, check_limit, name_in, page_of
from bullpen.records.passwords import check_password, hashed, matches
from bullpen.records.tables.access import session as session_table
from bullpen.records.tables.access import user as user_table

SESSION_MS = 12 * 3_600_000
_NOBODY: list[str] = []
"""The hash of no one's password, made once: an unknown name must take as long as a wrong password."""


class User(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    role: Role
    tenant: str | None
    created_ms: int
    disabled_ms: int | None

    @property
    def is_admin(self) -> bool:
        """Whether they can let others in now."""
        return self.role is Role.ADMIN and self.disabled_ms is None


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Someone who is logged in, until it expires or ends."""

    user: User
    csrf: str
    """To be sent along with each write; a foreign page cannot know it."""
    expires_ms: int


class Users:
    """Make users, check passwords, keep sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, name: str, password: str, *, role: Role | str, tenant: str | None = None) -> User:
        """RecordTaken if there is one of this name. A name with a slash is of a tenant, which stands before it."""
        if not name or len(name) > 200:
            raise BadOption("name: a text of 1 to 200 characters")
        before, slash, _ = name.rpartition("/")
        if slash and before != tenant:
            raise BadOption("name: what stands before a slash is the user's tenant")
        user = User(
            id=uuid.uuid4().hex,
            name=name,
            role=_role(role),
            tenant=tenant,
            created_ms=self._database.clock.now_ms(),
            disabled_ms=None,
        )
        kept = await hashed(check_password(password))
        try:
            async with self._database.writing() as connection:
                await connection.execute(insert(user_table), {**msgspec.structs.asdict(user), "password": kept})
        except IntegrityError as error:
            raise RecordTaken(f"there is a user named {name!r} already") from error
        return user

    async def get(self, user_id: str) -> User:
        """RecordMissing if there is none."""
        return await self._one(user_table.c.id == user_id, user_id)

    async def named(self, name: str) -> User:
        """RecordMissing if there is none."""
        return await self._one(user_table.c.name == name, name)

    async def _one(self, is_it: ColumnElement[bool], called: str) -> User:
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(select(user_table).where(is_it))).one_or_none()
        if row is None:
            raise RecordMissing(f"no user {called!r}")
        return _read(row)

    async def list(self, *, tenant: str | None = None, limit: int = 100, cursor: str | None = None) -> Page[User]:
        """All users, or those of a tenant, by name."""
        query = select(user_table).order_by(user_table.c.name).limit(check_limit(limit) + 1)
        if tenant is not None:
            query = query.where(user_table.c.tenant == tenant)
        if cursor is not None:
            query = query.where(user_table.c.name > name_in(cursor))
        async with self._database.reading(brief=True) as connection:
            found = [_read(row) for row in await connection.execute(query)]
        return page_of(found, limit, lambda user: user.name)

    async def set_password(self, user_id: str, password: str) -> None:
        """Change it, and end all sessions of the user. RecordMissing."""
        kept = await hashed(check_password(password))
        async with self._database.writing() as connection:
            if not await _write(connection, user_id, password=kept):
                raise RecordMissing(f"no user {user_id!r}")

    async def disable(self, user_id: str) -> None:
        """Let the user in no more, whoever is left, and end the sessions. RecordMissing."""
        await self.change(user_id, is_disabled=True, may_be_last=True)

    async def change(
        self,
        user_id: str,
        *,
        role: Role | str | None = None,
        is_disabled: bool | None = None,
        may_be_last: bool = False,
    ) -> User:
        """Give another role, let in no more or again. A change ends all sessions: they were opened for something else.

        RecordMissing; LastAdmin if nobody else who logs in could undo it, unless it `may_be_last`.
        """
        async with self._database.writing() as connection:
            before, others = await _with_admins(connection, user_id)
            after = self._changed(before, before.role if role is None else _role(role), is_disabled)
            if after == before:
                return before
            if before.is_admin and not after.is_admin and not may_be_last and not _can_undo(others, before):
                raise LastAdmin(f"{before.name} is the last admin who can log in: make another one first")
            await _write(connection, user_id, role=after.role, disabled_ms=after.disabled_ms)
        return after

    def _changed(self, user: User, role: Role, is_disabled: bool | None) -> User:
        disabled_ms = user.disabled_ms
        if is_disabled is not None and is_disabled != (disabled_ms is not None):
            disabled_ms = self._database.clock.now_ms() if is_disabled else None
        return msgspec.structs.replace(user, role=role, disabled_ms=disabled_ms)

    # ── sessions ─────────────────────────────────────────────────────────────────────────

    async def log_in(self, name: str, password: str, *, session_ms: int = SESSION_MS) -> tuple[Session, str] | None:
        """A session and its token for the cookie; None for a wrong name or password."""
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(select(user_table).where(user_table.c.name == name))).one_or_none()
        kept = row.password if row is not None else await _hash_of_nobody()
        if not await matches(password, kept) or row is None or row.disabled_ms is not None:
            return None
        now_ms = self._database.clock.now_ms()
        token = secrets.token_urlsafe(32)
        session = Session(user=_read(row), csrf=secrets.token_urlsafe(32), expires_ms=now_ms + session_ms)
        async with self._database.writing() as connection:
            # A password takes its time: who was disabled meanwhile, or got another, has no session.
            is_same = select(user_table).where(user_table.c.id == row.id).with_for_update(read=True)
            if (await connection.execute(is_same)).one_or_none() != row:
                return None
            await connection.execute(delete(session_table).where(session_table.c.expires_ms <= now_ms))
            await connection.execute(
                insert(session_table),
                {
                    "digest": _digest(token),
                    "user_id": session.user.id,
                    "csrf": session.csrf,
                    "created_ms": now_ms,
                    "expires_ms": session.expires_ms,
                },
            )
        return session, token

    async def session(self, token: str) -> Session | None:
        """The session of a cookie's token, if it is still good."""
        query = (
            select(user_table, session_table.c.csrf, session_table.c.expires_ms)
            .join(session_table, session_table.c.user_id == user_table.c.id)
            .where(session_table.c.digest == _digest(token))
        )
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None or row.expires_ms <= self._database.clock.now_ms():
            return None
        return Session(user=_read(row), csrf=row.csrf, expires_ms=row.expires_ms)

    async def log_out(self, token: str) -> None:
        async with self._database.writing() as connection:
            await connection.execute(delete(session_table).where(session_table.c.digest == _digest(token)))


async def _with_admins(connection: AsyncConnection, user_id: str) -> tuple[User, list[User]]:
    """A user and all admins beside. RecordMissing.

    Held until the end of the transaction: or two admins could each be the other one for whom both may go.
    """
    is_admin = (user_table.c.role == Role.ADMIN) & user_table.c.disabled_ms.is_(None)
    query = select(user_table).where((user_table.c.id == user_id) | is_admin).order_by(user_table.c.id)
    found = {row.id: _read(row) for row in await connection.execute(query.with_for_update())}
    user = found.pop(user_id, None)
    if user is None:
        raise RecordMissing(f"no user {user_id!r}")
    return user, list(found.values())


def _can_undo(admins: Iterable[User], user: User) -> bool:
    """Whether one of them sees this user."""
    return any(admin.tenant in (None, user.tenant) for admin in admins)


async def _write(connection: AsyncConnection, user_id: str, **values: Any) -> bool:
    """Change the user and end all sessions; whether there is one."""
    changed = await connection.execute(update(user_table).where(user_table.c.id == user_id).values(**values))
    await connection.execute(delete(session_table).where(session_table.c.user_id == user_id))
    return changed.rowcount > 0


def _role(role: Role | str) -> Role:
    if role not in tuple(Role):
        raise BadOption(f"role: one of {', '.join(Role)}, not {role!r}")
    return Role(role)


async def _hash_of_nobody() -> str:
    if not _NOBODY:
        _NOBODY.append(await hashed(secrets.token_urlsafe(16)))
    return _NOBODY[0]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _read(row: Row[Any]) -> User:
    return User(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        tenant=row.tenant,
        created_ms=row.created_ms,
        disabled_ms=row.disabled_ms,
    )
