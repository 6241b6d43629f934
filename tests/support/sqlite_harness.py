"""The conformance kit's harness for the SQLite store."""

import sqlite3
from pathlib import Path

from bullpen.stores.base import Store
from bullpen.stores.sqlite import SqliteStore
from bullpen.stores.sqlite.file import forget_after_crash
from bullpen.testing.clock import ManualClock

_COUNTERS = """
SELECT queue.name, queue.waiting, queue.prioritized, queue.delayed, queue.active, queue.completed, queue.failed,
  queue.waiting_children,
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND state = 0 AND priority = 0),
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND state = 0 AND priority > 0),
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND state = 1),
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND state = 2),
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND state = 4),
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND state = 5),
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND state = 3)
FROM queue
"""
_STRAYS = """
SELECT 'body without job', key FROM body WHERE key NOT IN (SELECT key FROM job)
UNION ALL SELECT 'job without body', key FROM job WHERE key NOT IN (SELECT key FROM body)
UNION ALL SELECT 'log without job', job FROM log WHERE job NOT IN (SELECT key FROM job)
UNION ALL SELECT 'journal without job', job FROM journal WHERE job NOT IN (SELECT key FROM job)
UNION ALL SELECT 'mailbox without job', job FROM mailbox WHERE job NOT IN (SELECT key FROM job)
UNION ALL SELECT 'parked and not delayed', key FROM job WHERE parked IS NOT NULL AND state != 1
UNION ALL SELECT 'active without token', key FROM job WHERE state = 2 AND token IS NULL
UNION ALL SELECT 'token without lease', key FROM job WHERE state != 2 AND token IS NOT NULL
UNION ALL SELECT 'finished without time', key FROM job WHERE (state IN (4, 5)) != (finished_ms IS NOT NULL)
UNION ALL SELECT 'delayed without due time', key FROM job WHERE state = 1 AND due_ms IS NULL
UNION ALL SELECT 'children without parent', parent FROM child WHERE parent NOT IN (SELECT key FROM job)
UNION ALL SELECT 'pending child that is gone', child FROM child WHERE state = 0 AND child NOT IN (SELECT key FROM job)
UNION ALL SELECT 'waits for nobody', key FROM job
  WHERE state = 3 AND key NOT IN (SELECT parent FROM child WHERE state = 0)
UNION ALL SELECT 'children of one that has none', parent FROM child
  WHERE parent IN (SELECT key FROM job WHERE has_children = 0)
"""
_GROUPS = """
SELECT queue.name, job_group.name, job_group.waiting, job_group.active,
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND group_name = job_group.name AND state = 0),
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND group_name = job_group.name AND state = 2)
FROM job_group JOIN queue ON queue.id = job_group.queue
"""
_GROUPED = """
SELECT queue.name, queue.grouped,
  (SELECT count(*) FROM job WHERE job.queue = queue.id AND group_name IS NOT NULL AND state = 0),
  (SELECT coalesce(sum(waiting), 0) FROM job_group WHERE job_group.queue = queue.id)
FROM queue
"""


class SqliteHarness:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "queue.db"
        self.clock = ManualClock()
        self._stores: list[SqliteStore] = []

    async def open(self) -> Store:
        store = SqliteStore(self.path, clock=self.clock)
        await store.open()
        self._stores.append(store)
        return store

    async def advance(self, ms: int) -> None:
        self.clock.advance(ms)

    async def crash(self, store: Store) -> None:
        """All stores of a process share its fate; they must be opened again."""
        assert isinstance(store, SqliteStore)
        file = store._file
        for other in self._stores:
            if other._opened is file:
                other._opened = None
        forget_after_crash(file)

    async def check(self) -> None:
        check_file(self.path)

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


def check_file(path: Path) -> None:
    """The file is sound, its counters are true, and nothing lies about that belongs to nobody."""
    db = sqlite3.connect(path)
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for name, *numbers in db.execute(_COUNTERS):
            assert numbers[:7] == numbers[7:], f"counters of {name}"
        for queue, name, *numbers in db.execute(_GROUPS):
            assert numbers[:2] == numbers[2:], f"counters of group {name} in {queue}"
        for queue, *numbers in db.execute(_GROUPED):
            assert len(set(numbers)) == 1, f"grouped jobs of {queue}"
        assert db.execute(_STRAYS).fetchall() == []
    finally:
        db.close()
