"""Runs are numbered as they come, and found by their words."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from bullpen.records.runs.wording import (
    LONGEST_PROMPT,
    WORDED,
    words_of_end,
    words_of_parts,
    words_of_run,
    words_of_task,
)
from bullpen.records.runs.words import TaskState

revision = "0021"
down_revision = "0020"

_AT_ONCE = 500
_RUNS = sa.text(
    "SELECT number, id, tenant, workspace, created_by, state FROM bullpen_run"
    " WHERE number > :after ORDER BY number LIMIT :some"
)
_TASKS = sa.text(
    "SELECT id, run, parent, kind, substr(prompt, 1, :longest) AS prompt,"
    " CASE WHEN parent IS NULL AND state IN :worded THEN outcome END AS outcome"
    " FROM bullpen_task WHERE run IN :runs ORDER BY created_ms, id"
).bindparams(sa.bindparam("runs", expanding=True), sa.bindparam("worded", expanding=True))

_PUT_IN_SQLITE = sa.text("INSERT INTO bullpen_run_text (rowid, words) VALUES (:number, :words)")
_PUT_IN_POSTGRES = sa.text(
    "INSERT INTO bullpen_run_text (key, words) VALUES (:number, array_to_tsvector(string_to_array(:words, ' ')))"
)


class _Problem(msgspec.Struct):
    code: str = ""
    message: str = ""


class _Outcome(msgspec.Struct):
    """As it was written so far."""

    error: _Problem | None = None


def upgrade() -> None:
    op.add_column("bullpen_run", sa.Column("number", sa.BigInteger()))
    op.execute(
        "UPDATE bullpen_run SET number = counted.number FROM"
        " (SELECT id, row_number() OVER (ORDER BY created_ms, id) AS number FROM bullpen_run) AS counted"
        " WHERE counted.id = bullpen_run.id"
    )
    op.create_index("uq_bullpen_run_number", "bullpen_run", ["number"], unique=True)
    is_postgres = op.get_bind().dialect.name == "postgresql"
    if is_postgres:
        op.execute("CREATE SEQUENCE bullpen_run_number_seq OWNED BY bullpen_run.number")
        op.execute("SELECT setval('bullpen_run_number_seq', coalesce(max(number), 0) + 1, false) FROM bullpen_run")
        op.execute("ALTER TABLE bullpen_run ALTER COLUMN number SET DEFAULT nextval('bullpen_run_number_seq')")
        op.execute("CREATE TABLE bullpen_run_text (key BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)")
        op.execute("CREATE INDEX ix_bullpen_run_text_words ON bullpen_run_text USING gin (words)")
    else:
        op.execute(
            "CREATE VIRTUAL TABLE bullpen_run_text USING fts5"
            " (words, tokenize = 'unicode61', detail = 'none', prefix = '1 2 3 4 5 6 7 8')"
        )
    _put_words(is_postgres=is_postgres)
    if is_postgres:
        # By itself it counts up to a minute later, and until then a search may sort all words.
        op.execute("ANALYZE bullpen_run, bullpen_run_text")


def _put_words(*, is_postgres: bool) -> None:
    """Of the runs that are there, some at once: their prompts may be more than memory holds."""
    connection, after = op.get_bind(), 0
    put = _PUT_IN_POSTGRES if is_postgres else _PUT_IN_SQLITE
    while runs := connection.execute(_RUNS, {"after": after, "some": _AT_ONCE}).mappings().all():
        after = runs[-1]["number"]
        tasks: dict[str, list[Mapping[Any, Any]]] = {run["id"]: [] for run in runs}
        asked = {"runs": list(tasks), "worded": sorted(WORDED), "longest": LONGEST_PROMPT}
        for task in connection.execute(_TASKS, asked).mappings():
            tasks[task["run"]].append(task)
        words = [{"number": run["number"], "words": " ".join(_words(run, tasks[run["id"]]))} for run in runs]
        connection.execute(put, words)


def _words(run: Mapping[Any, Any], tasks: Iterable[Mapping[Any, Any]]) -> dict[str, None]:
    """Each once."""
    told = {name: run[name] for name in ("tenant", "workspace", "created_by")}
    found = words_of_run(run["id"], **told)
    problem = ""
    for task in tasks:
        if task["parent"] is None:
            found += words_of_task(task["id"], kind=task["kind"], prompt=task["prompt"])
        else:
            found += words_of_parts([task["id"]], kind=task["kind"])
        problem = problem or _problem(task["outcome"])
    return dict.fromkeys([*found, *words_of_end(TaskState(run["state"]), problem)])


def _problem(outcome: bytes | None) -> str:
    try:
        told = msgspec.json.decode(outcome or b"{}", type=_Outcome).error
    except msgspec.DecodeError:
        return ""  # a run is found by its other words
    return "" if told is None else f"{told.code} {told.message}"
