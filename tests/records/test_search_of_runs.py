"""Search of runs: what is found, whose, in which order, page by page; and that words come and go with their run."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import text

from bullpen.errors import BadOption
from bullpen.records.model import texts
from bullpen.records.model.words import words_of
from bullpen.records.records import Records
from bullpen.records.runs import searching
from bullpen.records.runs.forgetting import RUN_DAYS, forget_old
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import TaskState

_DAY_MS = 86_400_000
_ASKED: dict[str, Any] = {"tenant": "acme", "kind": "agent_run", "queue": "agent-standard", "terms": b""}
_FAILED: dict[str, Any] = {"state": TaskState.FAILED, "problem": "E007 no such moon"}


async def _make(
    records: Records,
    name: str,
    prompt: str,
    *,
    tenant: str = "acme",
    workspace: str | None = None,
    state: TaskState = TaskState.QUEUED,
    problem: str = "",
    parts: Sequence[str] = (),
) -> None:
    """The run `run_<name>`, with a task and parts of it, in this state."""
    run, task = f"run_{name}", f"task_{name}"
    async with records.database.writing() as connection:
        runs = RunsOn(connection, records.database)
        await runs.create(run, tenant, created_by="user:Zoë", workspace=workspace, state=TaskState.QUEUED)
        of: dict[str, Any] = {"tenant": tenant, "queue": "agent-standard", "terms": b"", "state": TaskState.QUEUED}
        await runs.create_task(run, task, kind="wide_research", prompt=prompt, **of)
        for part in parts:
            await runs.create_task(run, f"task_{part}", kind="agent_run", prompt="a part", parent=task, **of)
        if parts:
            await runs.name_parts(run, [f"task_{part}" for part in parts], "agent_run")
        if state is not TaskState.QUEUED:
            await runs.move(task, TaskState.RUNNING)
        if state not in {TaskState.QUEUED, TaskState.RUNNING}:
            await runs.move(task, state, problem=problem)


async def _create(runs: RunsOn, name: str) -> None:
    await runs.create(f"run_{name}", "acme", created_by="ann")
    await runs.create_task(f"run_{name}", f"task_{name}", prompt="Study the sky", **_ASKED)


async def _found(records: Records, words: str, **within: Any) -> list[str]:
    return [run.id.removeprefix("run_") for run in (await records.runs.page(text=words, **within)).runs]


async def _texts(records: Records) -> int:
    async with records.database.reading() as connection:
        return int((await connection.execute(text("SELECT count(*) FROM bullpen_run_text"))).scalar_one())


@pytest.mark.parametrize(
    "words",
    [
        "run_3f9a2c41d07e",
        "3f9a2c",
        "task_3f9a2c41d07e",
        "task_77aa",
        "WIDE research",
        "agent_run",
        "summar",
        "Résumé",
        "resume report",
        "user:zoe",
        "E007",
        "no such moon",
        "repor moo zo",
    ],
)
async def test_a_run_is_found_by_any_of_its_words_and_their_beginnings(records: Records, words: str) -> None:
    await _make(records, "3f9a2c41d07e", "Summarize the résumé and the report", parts=["77aa"], **_FAILED)
    await _make(records, "b1b2b3b4b5b6", "Draw a picture", state=TaskState.COMPLETED)
    found = await _found(records, words)
    others = ["b1b2b3b4b5b6"] if words in {"WIDE research", "user:zoe"} else []
    assert found == [*others, "3f9a2c41d07e"]


async def test_a_run_is_found_by_an_id_that_looks_like_a_number(records: Records) -> None:
    for name in ("4e4a81bf62bf", "4e4b"):
        await _make(records, name, "Study the sky")
    assert await _found(records, "task_4e4a81bf62bf") == await _found(records, "4e4a") == ["4e4a81bf62bf"]


@pytest.mark.parametrize("words", ["nowhere", "ummarize", "report nowhere", "moon", "", "…", "'); --", '"', "a part"])
async def test_what_no_run_has_finds_nothing(records: Records, words: str) -> None:
    """Neither the middle of a word, nor what no word is in; the parts of a research have no words of their own."""
    await _make(records, "1", "Summarize the report")
    await _make(records, "2", "Study the sky", parts=["3"])
    assert await _found(records, words) == []


async def test_of_a_long_prompt_the_beginning_is_searched(records: Records) -> None:
    await _make(records, "1", f"{'x ' * 900} early {'x ' * 100} late")
    assert (await _found(records, "early"), await _found(records, "late")) == (["1"], [])


@pytest.mark.parametrize("few", [-1, 2_000])
async def test_a_search_is_narrowed_by_all_that_a_list_is(
    records: Records, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """By the words of the index, and by reading the few runs of a state: both find the same."""
    monkeypatch.setattr(searching, "_FEW", few)
    ends = {
        "0": TaskState.QUEUED,
        "1": TaskState.RUNNING,
        "2": TaskState.COMPLETED,
        "3": TaskState.FAILED,
        "4": TaskState.CANCELLED,
        "5": TaskState.SUSPENDED,
        "6": TaskState.QUEUED,
        "7": TaskState.FAILED,
    }
    for name, state in ends.items():
        tenant, workspace = ("acme", "other")[int(name) % 2], ("sales", None)[int(name) // 4]
        await _make(records, name, "Study the sky", tenant=tenant, workspace=workspace, state=state)
    async with records.database.writing() as connection:
        runs = RunsOn(connection, records.database)
        await runs.move("task_5", TaskState.SUSPENDED, question={"signal": "s"})
    assert await _found(records, "sky", tenant="acme") == ["6", "4", "2", "0"]
    assert await _found(records, "sky", tenant="nobody") == []
    assert await _found(records, "sky", workspace="sales") == ["3", "2", "1", "0"]
    assert await _found(records, "sky", workspace="sales", tenant="other") == ["3", "1"]
    assert await _found(records, "sky", state=TaskState.QUEUED) == ["6", "0"]
    assert await _found(records, "sky", state=TaskState.QUEUED, workspace="sales") == ["0"]
    assert await _found(records, "sky", state=TaskState.RUNNING, tenant="acme") == []
    assert await _found(records, "sky", state=TaskState.COMPLETED) == ["2"]
    assert await _found(records, "study", state=TaskState.FAILED) == ["7", "3"]
    assert await _found(records, "study", state=TaskState.FAILED, tenant="other", workspace="sales") == ["3"]
    assert await _found(records, "sky", state=TaskState.CANCELLED) == ["4"]
    assert await _found(records, "sky", is_asking=True) == ["5"]
    assert await _found(records, "sky", is_asking=True, state=TaskState.FAILED) == []
    assert await _found(records, "moon", is_asking=True) == await _found(records, "moon", tenant="acme") == []


@pytest.mark.parametrize("few", [-1, 2_000])
@pytest.mark.parametrize(
    "words, within",
    [
        ("typ", {}),
        ("run typewriters 1", {}),
        ("typewriter", {"tenant": "acme"}),
        ("type", {"state": TaskState.RUNNING}),
        ("typewriters", {"state": TaskState.QUEUED, "tenant": "acme"}),
    ],
)
async def test_pages_have_each_run_once_and_the_newest_first(
    records: Records, monkeypatch: pytest.MonkeyPatch, words: str, within: dict[str, Any], few: int
) -> None:
    """Whichever way they are found, and however long the words are."""
    monkeypatch.setattr(searching, "_FEW", few)
    monkeypatch.setattr(texts, "_NEWEST", 5)
    monkeypatch.setattr(texts, "_NEWEST_VECTORS", 5)
    names, states = ("typewriters", "typewriting", "types"), (TaskState.QUEUED, TaskState.RUNNING)
    for n in range(30):
        await _make(records, f"{n}", names[n % 3], tenant=("acme", "other")[n % 4 // 2], state=states[n % 2])
    begun = words_of([words.removeprefix("run ")])
    expected = [
        f"{n}"
        for n in reversed(range(30))
        if all(any(own.startswith(word) for own in (names[n % 3], f"{n}")) for word in begun)
        and within.get("tenant", "acme") == ("acme", "other")[n % 4 // 2 if "tenant" in within else 0]
        and within.get("state", states[n % 2]) == states[n % 2]
    ]
    assert len(expected) > 2
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await records.runs.page(text=words, limit=2, cursor=cursor, **within)
        found += [run.id.removeprefix("run_") for run in page.runs]
        if (cursor := page.cursor) is None:
            break
    assert found == expected


@pytest.mark.parametrize("cursor", ["nonsense", "1~run_1", "-1", "1" * 30, ""])
async def test_the_cursor_of_a_search_is_one_that_a_search_gave(records: Records, cursor: str) -> None:
    with pytest.raises(BadOption, match="cursor"):
        await records.runs.page(text="sky", cursor=cursor)


async def test_runs_that_are_made_at_once_are_all_found(records: Records) -> None:
    await asyncio.gather(*[_make(records, f"{n}", "Study the sky") for n in range(12)])
    assert sorted(map(int, await _found(records, "sky"))) == list(range(12))


async def test_a_task_that_comes_after_its_run_brings_the_words_of_both(records: Records) -> None:
    async with records.database.writing() as connection:
        await RunsOn(connection, records.database).create("run_1", "acme", created_by="Zoë", workspace="sales")
    assert (await _found(records, "run_1"), await _texts(records)) == ([], 0)
    async with records.database.writing() as connection:
        await RunsOn(connection, records.database).create_task("run_1", "task_1", prompt="Study the sky", **_ASKED)
    assert await _found(records, "zoe sky", tenant="acme", workspace="sales") == ["1"]


async def test_a_run_that_was_not_committed_leaves_no_words(records: Records) -> None:
    """Its words are written with it, and a reason with its end."""

    async def undone(change: Callable[[RunsOn], Awaitable[object]]) -> None:
        async with records.database.writing() as connection:
            await change(RunsOn(connection, records.database))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await undone(lambda runs: _create(runs, "1"))
    assert (await _texts(records), await _found(records, "run_1")) == (0, [])
    await _make(records, "2", "Study the sky", state=TaskState.RUNNING)
    with pytest.raises(ZeroDivisionError):
        await undone(lambda runs: runs.move("task_2", TaskState.FAILED, problem="E007 no moon"))
    assert (await _found(records, "moon"), await _found(records, "sky")) == ([], ["2"])


async def test_the_words_of_a_run_that_is_forgotten_go_with_it(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUN_DAYS, "7")
    await _make(records, "1", "Study the sky", state=TaskState.COMPLETED)
    await _make(records, "2", "Study the sky", state=TaskState.RUNNING)
    assert await forget_old(records.database, now_ms=records.database.clock.now_ms() + 8 * _DAY_MS) == 1
    assert (await _texts(records), await _found(records, "sky")) == (1, ["2"])
    await _make(records, "3", "Study the sea")
    assert await _found(records, "study") == ["3", "2"]
