"""Idempotency keys of API writes: the same request with the same key gets the first answer.

    answer = await records.idempotency.begin(scope, key, request)
    if answer is None:                   # it is ours to carry out
        answer = ...
        await records.idempotency.finish(scope, key, answer)

What takes longer than half a minute says so with `hold`. A process that dies in between leaves the key taken without
an answer, for a minute: who asks again
then carries it out, which may be the second time. Writes that must not be give the job an id as well.
"""

from collections.abc import Awaitable, Callable

import msgspec
from sqlalchemy import delete, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from bullpen.errors import IdempotencyConflict, IdempotencyInProgress
from bullpen.records.database import Database
from bullpen.records.deleting_in_parts import TOGETHER, delete_by_parts
from bullpen.records.tables.access import idempotency

MEMORY_MS = 86_400_000
_UNDER_WAY_MS = 60_000


class Answer(msgspec.Struct, frozen=True):
    """An HTTP answer, as it is given again."""

    status: int
    body: bytes
    content_type: str = "application/json"


class Idempotency:
    """Remembers what was answered to whom. `scope` is who asks; keys of others are nobody's business."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, scope: str, key: str, request: str, *, whole: Callable[[], Awaitable[str]] | None = None
    ) -> Answer | None:
        """Take the key for this request, or get what was answered to it.

        `request` is a digest of what is asked. Of one that is too large to be read before it is carried out, `whole`
        reads it and tells the digest that `finish` is given; it is called where there is an answer to compare with.
        IdempotencyConflict if the key was taken for something else, IdempotencyInProgress if its first request is
        not answered yet.
        """
        now_ms = self._database.clock.now_ms()
        is_it = (idempotency.c.scope == scope) & (idempotency.c.key == key)
        taken = {
            "scope": scope,
            "key": key,
            "request": request,
            "content_type": "",
            "expires_ms": now_ms + _UNDER_WAY_MS,
        }
        try:
            async with self._database.writing(brief=True) as connection:
                await connection.execute(delete(idempotency).where(is_it & (idempotency.c.expires_ms <= now_ms)))
                await connection.execute(insert(idempotency), taken)
        except IntegrityError:
            return await self._answer(scope, key, request, whole)
        return None

    async def _answer(self, scope: str, key: str, request: str, whole: Callable[[], Awaitable[str]] | None) -> Answer:
        is_it = (idempotency.c.scope == scope) & (idempotency.c.key == key)
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(select(idempotency).where(is_it))).one_or_none()
        if row is None or row.status is None:
            raise IdempotencyInProgress("a request with this idempotency key is under way: ask again later")
        if row.request != (request if whole is None else await whole()):
            raise IdempotencyConflict("this idempotency key was used for another request")
        return Answer(row.status, row.body, row.content_type)

    async def finish(self, scope: str, key: str, answer: Answer, *, request: str | None = None) -> None:
        """Remember the answer, for a day; `request` where only now it is known as a whole."""
        is_it = (idempotency.c.scope == scope) & (idempotency.c.key == key)
        values = msgspec.structs.asdict(answer) | {"expires_ms": self._database.clock.now_ms() + MEMORY_MS}
        values |= {} if request is None else {"request": request}
        async with self._database.writing(brief=True) as connection:
            await connection.execute(update(idempotency).where(is_it).values(**values))

    async def hold(self, scope: str, key: str) -> None:
        """It is still being carried out: let nobody else begin it for another minute."""
        is_it = (idempotency.c.scope == scope) & (idempotency.c.key == key) & idempotency.c.status.is_(None)
        expires_ms = self._database.clock.now_ms() + _UNDER_WAY_MS
        async with self._database.writing(brief=True) as connection:
            await connection.execute(update(idempotency).where(is_it).values(expires_ms=expires_ms))

    async def give_up(self, scope: str, key: str) -> None:
        """Nothing was done: let the same key be tried again at once."""
        is_it = (idempotency.c.scope == scope) & (idempotency.c.key == key) & idempotency.c.status.is_(None)
        async with self._database.writing(brief=True) as connection:
            await connection.execute(delete(idempotency).where(is_it))

    async def forget(self) -> int:
        """Drop what is past its time, some at a time; how many that were."""
        key = (idempotency.c.scope, idempotency.c.key)
        gone = select(*key).where(idempotency.c.expires_ms <= self._database.clock.now_ms())
        oldest = gone.order_by(idempotency.c.expires_ms).limit(TOGETHER)
        return await delete_by_parts(self._database, delete(idempotency).where(tuple_(*key).in_(oldest)))
