"""How much a tenant may have lying here that no run was given yet: whoever may upload could else fill the disk."""

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import UploadsFull
from bullpen.records.database import Database
from bullpen.records.tables.files import file
from bullpen.settings import whole_from

UPLOADS_MB = "BULLPEN_UPLOADS_MB"
_USUAL_MB, _MOST_MB = 1_000, 100_000_000
_MB = 1 << 20
_LOCK = 0x42756C6C
"""Any number that nobody else locks together with a tenant."""


class Quota:
    """Of one tenant, by its plan or by the setting."""

    def __init__(self, tenant: str, planned_mb: int | None = None) -> None:
        self.tenant = tenant
        self._most_mb = whole_from(UPLOADS_MB, _USUAL_MB, 1, _MOST_MB) if planned_mb is None else planned_mb
        self._named_by = UPLOADS_MB if planned_mb is None else "the tenant's plan"

    async def check(self, connection: AsyncConnection, database: Database, size: int, *, is_final: bool) -> None:
        """UploadsFull if so many bytes more are too many; if it is final, those who add take turns from here on."""
        if is_final and database.is_postgres:
            lock = text("SELECT pg_advisory_xact_lock(:lock, hashtext(:tenant))")
            await connection.execute(lock, {"lock": _LOCK, "tenant": self.tenant})
        unused = (file.c.tenant == self.tenant, file.c.run.is_(None), file.c.expires_ms > database.clock.now_ms())
        there = await connection.execute(select(func.coalesce(func.sum(file.c.size), 0)).where(*unused))
        if int(there.scalar_one()) + size > self._most_mb * _MB:
            raise UploadsFull(
                f"data: files that no run has may have {self._most_mb} MB together, by {self._named_by};"
                " give them to a run or remove some"
            )
