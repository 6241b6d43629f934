"""How many jobs failed in each stretch of time that an alert looks at, and when that is enough."""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.builtin.subscribers import Watch
from bullpen.job.events import Event
from bullpen.records.database import Database
from bullpen.records.model.sql import insert_for
from bullpen.records.tables.webhooks import alert_window


class Crossed(msgspec.Struct, frozen=True):
    """An alert's number was reached, by this event."""

    watch: Watch
    window_ms: int
    failed: int
    event: Event


class Tally:
    """The counts of one page of events: read, grown, and written with the page's cursor."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], int] = {}
        self._watches: dict[str, Watch] = {}

    async def count(
        self,
        connection: AsyncConnection,
        queue: str,
        events: Sequence[Event],
        watches: Sequence[Watch],
        names: Mapping[str | None, str],
    ) -> list[Crossed]:
        """The alerts that are to be told; `names` are those of the jobs by id, where an alert asks for one."""
        crossed = []
        for watch in watches:
            for event in events:
                if not watch.counts(queue, event, names.get(event.job_id)):
                    continue
                key = (watch.alert.id, watch.window_of(event))
                if key not in self._counts:
                    self._counts[key] = await _known(connection, *key)
                self._counts[key] += 1
                self._watches[watch.alert.id] = watch
                if self._counts[key] == watch.condition.failed:
                    crossed.append(Crossed(watch, key[1], self._counts[key], event))
        return crossed

    async def write(self, connection: AsyncConnection, database: Database) -> None:
        """Within the transaction that moves the cursor."""
        for (alert_id, window_ms), failed in self._counts.items():
            values = {"failed": failed}
            new = insert_for(database, alert_window).values(alert_id=alert_id, window_ms=window_ms, **values)
            keys = [alert_window.c.alert_id, alert_window.c.window_ms]
            await connection.execute(new.on_conflict_do_update(index_elements=keys, set_=values))
            old_ms = window_ms - 2 * self._watches[alert_id].condition.window_ms
            is_old = (alert_window.c.alert_id == alert_id) & (alert_window.c.window_ms < old_ms)
            await connection.execute(delete(alert_window).where(is_old))


async def _known(connection: AsyncConnection, alert_id: str, window_ms: int) -> int:
    is_it = (alert_window.c.alert_id == alert_id) & (alert_window.c.window_ms == window_ms)
    return (await connection.execute(select(alert_window.c.failed).where(is_it))).scalar() or 0
