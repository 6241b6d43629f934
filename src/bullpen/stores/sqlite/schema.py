"""The tables of the file, and their versions.

A job's row holds what changes; its body (name, data, spec) is written once and read at each
claim, so that moving a job never rewrites its payload. Each job stands in exactly one of the
partial indexes, the one of its state, in the order in which that state is read.

`position` is the place in line: the job's own key (first in, first out), minus a fresh number
(head of the line), or a fresh number (end of the line). `entered_ms` is when a job that
waits, for its turn or its time, came to where it stands. Counters on `queue` make counting free.
A schedule's row names its newest tick, which is a job like others under the id that it has there.
`parked` is the list of signals that a parked job waits for; `has_steps` says that there are rows of
it in `journal` or `mailbox`, so that forgetting the many jobs without any asks neither.
Events are kept in runs: one row holds all that a commit said about a queue. `family.py` tells of
parents and children; `delay_ms` is the delay that a parent has before it when its children are done.

A job that has a group stands in the same index under the group's name, and in a second one that
orders the grouped jobs of a queue by their places. A row of `job_group` is a group that has jobs
or something of its own: it is in the ring, or wakes at a time, or neither.
"""

import sqlite3

READY, DELAYED, ACTIVE, WAITING_CHILDREN, COMPLETED, FAILED = range(6)

_VERSION_1 = f"""
CREATE TABLE sequence(next INTEGER NOT NULL);
INSERT INTO sequence VALUES(1);

CREATE TABLE queue(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  listed INTEGER NOT NULL DEFAULT 1,
  paused INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  prioritized INTEGER NOT NULL DEFAULT 0,
  delayed INTEGER NOT NULL DEFAULT 0,
  active INTEGER NOT NULL DEFAULT 0,
  waiting_children INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  last_event INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE job(
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  own_id TEXT,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  position INTEGER NOT NULL,
  added_ms INTEGER NOT NULL,
  entered_ms INTEGER,
  due_ms INTEGER,
  start_by_ms INTEGER,
  started_ms INTEGER,
  finished_ms INTEGER,
  lease_until_ms INTEGER,
  token TEXT,
  worker TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  attempts_made INTEGER NOT NULL DEFAULT 0,
  crashes TEXT,
  tenant TEXT,
  dedup TEXT,
  keep TEXT,
  cancelling TEXT,
  note TEXT,
  progress BLOB,
  result BLOB,
  failure BLOB,
  stacks BLOB
);
CREATE UNIQUE INDEX job_own_id ON job(queue, own_id) WHERE own_id IS NOT NULL;
CREATE INDEX job_ready ON job(queue, priority, position) WHERE state = {READY};
CREATE INDEX job_delayed ON job(queue, due_ms, position) WHERE state = {DELAYED};
CREATE INDEX job_active ON job(queue, lease_until_ms) WHERE state = {ACTIVE};
CREATE INDEX job_finished ON job(queue, state, finished_ms, key) WHERE finished_ms IS NOT NULL;
CREATE INDEX job_cancelling ON job(worker) WHERE cancelling IS NOT NULL;
CREATE INDEX job_start_by ON job(start_by_ms) WHERE start_by_ms IS NOT NULL;

CREATE TABLE body(
  key INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  data BLOB NOT NULL,
  spec BLOB NOT NULL
);

CREATE TABLE log(
  job INTEGER NOT NULL,
  line INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY(job, line)
) WITHOUT ROWID;

CREATE TABLE event(
  queue INTEGER NOT NULL,
  last INTEGER NOT NULL,
  first INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY(queue, last)
) WITHOUT ROWID;

CREATE TABLE dedup(
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  owner INTEGER NOT NULL,
  owner_id TEXT NOT NULL,
  until_ms INTEGER,
  next BLOB,
  PRIMARY KEY(queue, id)
) WITHOUT ROWID;

CREATE TABLE id_memory(
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  until_ms INTEGER NOT NULL,
  PRIMARY KEY(queue, id)
) WITHOUT ROWID;
CREATE INDEX id_memory_until ON id_memory(until_ms);

CREATE TABLE request(
  id TEXT PRIMARY KEY,
  until_ms INTEGER NOT NULL,
  answer BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX request_until ON request(until_ms);

CREATE TABLE worker(
  name TEXT PRIMARY KEY,
  until_ms INTEGER NOT NULL,
  info BLOB NOT NULL
) WITHOUT ROWID;
"""

_FAMILIES = f"""
ALTER TABLE job ADD COLUMN parent INTEGER;
ALTER TABLE job ADD COLUMN parent_ref TEXT;
ALTER TABLE job ADD COLUMN has_children INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN delay_ms INTEGER;
ALTER TABLE job ADD COLUMN doomed BLOB;
CREATE INDEX job_waiting_children ON job(queue, entered_ms, key) WHERE state = {WAITING_CHILDREN};
CREATE TABLE child(
  parent INTEGER NOT NULL,
  child INTEGER NOT NULL,
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  state INTEGER NOT NULL,
  policy TEXT,
  value BLOB,
  PRIMARY KEY(parent, child)
) WITHOUT ROWID;
CREATE INDEX child_pending ON child(parent) WHERE state = 0;
"""

_MOVING = """
CREATE TABLE IF NOT EXISTS move(
  queue INTEGER PRIMARY KEY,
  origin TEXT NOT NULL,
  run TEXT NOT NULL,
  ids_below INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS arrival(
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  signals INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(queue, id)
) WITHOUT ROWID
"""
"""Made by the first move into a file. No new version: an older Bullpen that has the file open goes on."""

_SCHEDULES = """
CREATE TABLE schedule(
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  definition BLOB NOT NULL,
  last_ms INTEGER NOT NULL,
  tick TEXT NOT NULL,
  count INTEGER NOT NULL,
  ticks INTEGER NOT NULL,
  skipped INTEGER NOT NULL DEFAULT 0,
  paused INTEGER NOT NULL DEFAULT 0,
  ended INTEGER NOT NULL DEFAULT 0,
  running TEXT,
  PRIMARY KEY(queue, id)
) WITHOUT ROWID;
CREATE INDEX schedule_last ON schedule(queue, last_ms) WHERE paused = 0 AND ended = 0;
"""

_STEPS = """
ALTER TABLE job ADD COLUMN parked TEXT;
ALTER TABLE job ADD COLUMN has_steps INTEGER NOT NULL DEFAULT 0;

CREATE TABLE journal(
  job INTEGER NOT NULL,
  place INTEGER NOT NULL,
  is_done INTEGER NOT NULL,
  head BLOB NOT NULL,
  value BLOB,
  PRIMARY KEY(job, place)
);

CREATE TABLE mailbox(
  number INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  name TEXT NOT NULL,
  payload BLOB NOT NULL
);
CREATE INDEX mailbox_job ON mailbox(job, number);
"""

_GROUPS = f"""
ALTER TABLE job ADD COLUMN group_name TEXT;
ALTER TABLE queue ADD COLUMN grouped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN limited INTEGER NOT NULL DEFAULT 0;
DROP INDEX job_ready;
CREATE INDEX job_ready ON job(queue, group_name, priority, position) WHERE state = {READY};
CREATE INDEX job_grouped ON job(queue, priority, position) WHERE state = {READY} AND group_name IS NOT NULL;

CREATE TABLE job_group(
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  waiting INTEGER NOT NULL,
  active INTEGER NOT NULL,
  is_in_ring INTEGER NOT NULL,
  virtual_time REAL NOT NULL,
  wake_ms INTEGER,
  is_shown INTEGER NOT NULL,
  keep_until_ms INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  limits BLOB,
  window_until_ms INTEGER NOT NULL,
  window_starts INTEGER NOT NULL,
  closed_until_ms INTEGER NOT NULL,
  PRIMARY KEY(queue, name)
) WITHOUT ROWID;
CREATE INDEX job_group_ring ON job_group(queue, virtual_time, name) WHERE is_in_ring;
CREATE INDEX job_group_wake ON job_group(queue, wake_ms) WHERE wake_ms IS NOT NULL;
CREATE INDEX job_group_shown ON job_group(queue, name) WHERE is_shown;
CREATE INDEX job_group_idle ON job_group(queue, virtual_time) WHERE NOT is_shown;

CREATE TABLE ring(
  queue INTEGER PRIMARY KEY,
  present REAL NOT NULL DEFAULT 0,
  latest REAL NOT NULL DEFAULT 0,
  limits BLOB
);

CREATE TABLE queue_limit(
  queue INTEGER PRIMARY KEY,
  limits BLOB NOT NULL,
  window_until_ms INTEGER NOT NULL DEFAULT 0,
  window_starts INTEGER NOT NULL DEFAULT 0,
  closed_until_ms INTEGER NOT NULL DEFAULT 0
);
"""

MIGRATIONS: tuple[str, ...] = (_VERSION_1, _SCHEDULES, _STEPS, _FAMILIES, _GROUPS)
"""The script at index n brings a file from version n to n + 1."""
VERSION = len(MIGRATIONS)


def make_moving_tables(db: sqlite3.Connection) -> None:
    for statement in _MOVING.split(";"):
        db.execute(statement)
    # An older Bullpen made this table without; where it has the file open it leaves the column alone.
    if not db.execute("SELECT 1 FROM pragma_table_info('arrival') WHERE name = 'signals'").fetchone():
        db.execute("ALTER TABLE arrival ADD COLUMN signals INTEGER NOT NULL DEFAULT 0")


def moving_tables(db: sqlite3.Connection) -> list[str]:
    """Those that are there."""
    return [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE name IN ('move', 'arrival')")]
