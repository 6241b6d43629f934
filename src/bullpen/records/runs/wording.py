"""The words by which a run is found: kept with each change that brings some, in its transaction.

created with its first task ─▶ id, who asked, tenant, workspace; the task's id, kind, the beginning of its prompt
parts of a research ─▶ ids, kind            ended without an answer ─▶ how, and why
"""

from collections.abc import Sequence

from sqlalchemy import TextClause, text

from bullpen.records.database import Database
from bullpen.records.model.texts import AS_VECTOR, Texts
from bullpen.records.model.words import state_word, tenant_word, words_of, workspace_word
from bullpen.records.prepared import Prepared
from bullpen.records.runs.words import FINAL, TaskState
from bullpen.records.tables.runs import run

LONGEST_PROMPT = 2_000
"""So many of its characters are searched."""
LONGEST_PROBLEM = 2_000
RUN_TEXTS = Texts("bullpen_run_text", run.c.number)
WORDED = FINAL - {TaskState.COMPLETED}
"""How the few end of which one looks for the reason: these states are words too."""


def words_of_run(run_id: str, *, tenant: str, workspace: str | None, created_by: str) -> list[str]:
    found = [*words_of([run_id, created_by]), tenant_word(tenant)]
    return found if workspace is None else [*found, workspace_word(workspace)]


def words_of_task(task_id: str, *, kind: str, prompt: str) -> list[str]:
    return words_of([task_id, kind, prompt[:LONGEST_PROMPT]])


def words_of_parts(task_ids: Sequence[str], *, kind: str) -> list[str]:
    """Only by what they are known: there may be fifty, each with a prompt."""
    return words_of([*task_ids, kind])


def words_of_end(state: TaskState, problem: str) -> list[str]:
    return [*words_of([problem[:LONGEST_PROBLEM]]), state_word(state)] if state in WORDED else []


class Statements:
    """Both take the id of a `run`, and `words` with spaces between them."""

    def __init__(self, database: Database) -> None:
        self.put = Prepared(database, _put(database))
        self.add = Prepared(database, _add(database))


def _put(database: Database) -> TextClause:
    key, words = ("key", AS_VECTOR) if database.is_postgres else ("rowid", ":words")
    return text(
        f"INSERT INTO {RUN_TEXTS.name} ({key}, words)"  # noqa: S608 - our own names
        f" SELECT number, {words} FROM bullpen_run WHERE id = :run AND number IS NOT NULL"
    )


def _add(database: Database) -> TextClause:
    key, words = ("key", AS_VECTOR) if database.is_postgres else ("rowid", "' ' || :words")
    return text(
        f"UPDATE {RUN_TEXTS.name} SET words = words || {words}"  # noqa: S608 - our own names
        f" WHERE {key} = (SELECT number FROM bullpen_run WHERE id = :run)"
    )
