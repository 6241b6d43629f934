"""Files of runs: kept once, told of with their row, and seen by their tenant only."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bullpen import (
    BadOption,
    LeaseLost,
    PayloadTooLarge,
    RecordMissing,
)
from bullpen.errors import WrongState
from bullpen.records.files.on import FilesOn
from bullpen.records.files.words import FileKind, FileType, RunFile, check_file_name, type_of
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from bullpen.testing.clock import ManualClock
from tests.records.files.runs import blobs_of, make_run


async def _kinds(records: Records, run: str = "r1") -> list[ProgressKind]:
    return [event.kind for event in await records.runs.events(run)]


async def test_the_files_of_a_run_come_in_pages(records: Records) -> None:
    await make_run(records)
    made = [await records.files.keep_artifact("t1", f"k{n}", "a.txt", b"one") for n in range(5)]
    found: list[RunFile] = []
    cursor = None
    while True:
        page = await records.files.page_of_run("r1", FileKind.ARTIFACT, tenant="acme", limit=2, cursor=cursor)
        assert len(page.files) <= 2
        found += page.files
        cursor = page.cursor
        if cursor is None:
            break
    assert sorted(one.id for one in found) == sorted(one.id for one in made)
    assert (await records.files.page_of_run("r1", FileKind.ARTIFACT, tenant="other")).files == ()


# ── artifacts ────────────────────────────────────────────────────────────────────────────


async def test_an_artifact_is_kept_and_told_of(records: Records) -> None:
    await make_run(records)
    made = await records.files.keep_artifact("t1", "t1/3", "report.pdf", b"%PDF", metadata={"pages": 2})
    assert (made.tenant, made.run, made.task, made.kind) == ("acme", "r1", "t1", FileKind.ARTIFACT)
    assert (made.type, made.mime, made.size, made.metadata) == ("document", "application/pdf", 4, {"pages": 2})
    assert await records.files.get(made.id, tenant="acme") == made
    assert await records.files.read(made.id, tenant="acme") == b"%PDF"
    assert await records.files.of_run("r1", tenant="acme") == [made]
    event = (await records.runs.events("r1"))[-1]
    assert event.kind == ProgressKind.ARTIFACT_CREATED
    assert event.data == {
        "id": made.id, "name": "report.pdf", "type": "document", "mime": "application/pdf", "size": 4,
    }  # fmt: skip


async def test_the_same_call_keeps_the_same_file(records: Records) -> None:
    """A call that is made again after a crash may write other bytes: who was told of the first still finds it."""
    await make_run(records)
    first = await records.files.keep_artifact("t1", "t1/3", "a.txt", b"one")
    again = await records.files.keep_artifact("t1", "t1/3", "a.txt", b"two")
    other = await records.files.keep_artifact("t1", "t1/4", "a.txt", b"three")
    assert again == first
    assert other.id != first.id
    assert await records.files.read(first.id) == b"one"
    assert (await _kinds(records)).count(ProgressKind.ARTIFACT_CREATED) == 2


async def test_the_same_call_at_once_keeps_one(records: Records) -> None:
    await make_run(records)
    keeping = (records.files.keep_artifact("t1", "t1/3", "a.txt", b"one") for _ in range(6))
    made = await asyncio.gather(*keeping)
    assert len({one.id for one in made}) == 1
    assert (await _kinds(records)).count(ProgressKind.ARTIFACT_CREATED) == 1


async def test_an_activation_that_was_overtaken_keeps_nothing(records: Records) -> None:
    await make_run(records)
    async with records.database.writing() as connection:
        journal = JournalOn(connection, records.database)
        await journal.open("t1")
        await journal.begin("t1", 2)
    with pytest.raises(LeaseLost):
        await records.files.keep_artifact("t1", "t1/3", "a.txt", b"one", epoch=1)
    assert await records.files.of_run("r1") == []
    assert (await records.files.keep_artifact("t1", "t1/3", "a.txt", b"one", epoch=2)).name == "a.txt"


async def test_a_file_for_no_task_is_refused(records: Records) -> None:
    with pytest.raises(RecordMissing, match="task"):
        await records.files.keep_artifact("nobody", "k", "a.txt", b"one")


# ── inputs ───────────────────────────────────────────────────────────────────────────────


async def test_an_input_is_given_to_a_run_by_its_id(records: Records) -> None:
    given = await records.files.add_input("acme", "data.csv", b"a,b\n")
    assert (given.run, given.kind, given.mime) == (None, FileKind.INPUT, "text/csv")
    await make_run(records)
    async with records.database.writing() as connection:
        on = FilesOn(connection, records.database, records.files.blobs)
        (attached,) = await on.attach("r1", [given.id, given.id], tenant="acme")
    assert (attached.id, attached.run, attached.expires_ms) == (given.id, "r1", None)
    assert await records.files.of_run("r1", kind=FileKind.INPUT) == [attached]
    assert ProgressKind.ARTIFACT_CREATED not in await _kinds(records)


async def test_an_input_of_another_run_is_given_again_under_its_own_id(records: Records) -> None:
    given = await records.files.add_input("acme", "data.csv", b"a,b\n")
    for run in ("r1", "r2"):
        await make_run(records, run, f"{run}-task")
        async with records.database.writing() as connection:
            on = FilesOn(connection, records.database, records.files.blobs)
            (attached,) = await on.attach(run, [given.id], tenant="acme")
        assert attached.run == run
    first, second = await records.files.of_run("r1"), await records.files.of_run("r2")
    assert first[0].id != second[0].id
    assert await records.files.read(second[0].id) == b"a,b\n"


async def test_nobody_attaches_what_is_another_tenants(records: Records) -> None:
    given = await records.files.add_input("other", "data.csv", b"a,b\n")
    await make_run(records)
    with pytest.raises(RecordMissing, match=given.id):
        async with records.database.writing() as connection:
            await FilesOn(connection, records.database, records.files.blobs).attach("r1", [given.id], tenant="acme")
    with pytest.raises(RecordMissing, match="run"):
        await records.files.add_input("other", "x.csv", b"x", run="r1")
    assert await records.files.of_run("r1") == []


async def test_an_input_is_removed_while_no_run_has_it(records: Records) -> None:
    unused = await records.files.add_input("acme", "a.csv", b"a")
    with pytest.raises(RecordMissing):
        await records.files.remove_input(unused.id, tenant="other")
    await records.files.remove_input(unused.id, tenant="acme")
    with pytest.raises(RecordMissing):
        await records.files.remove_input(unused.id)
    await make_run(records)
    used = await records.files.add_input("acme", "a.csv", b"a", run="r1")
    made = await records.files.keep_artifact("t1", "k", "a.txt", b"a")
    for kept in (used, made):
        with pytest.raises(WrongState, match="r1"):
            await records.files.remove_input(kept.id, tenant="acme")
        assert await records.files.read(kept.id) == b"a"


async def test_a_file_that_is_too_large_is_refused_as_it_comes(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_FILE_MB", "1")
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield bytes(1 << 19)

    with pytest.raises(PayloadTooLarge, match="BULLPEN_FILE_MB"):
        await records.files.add_input("acme", "big", endless())
    assert sent == 3
    with pytest.raises(PayloadTooLarge):
        await records.files.keep_artifact("t1", "k", "big", bytes((1 << 20) + 1))
    assert await blobs_of(records) == set()


@pytest.mark.parametrize(
    "name", ["", " ", ".", "..", "a/b", "../x", "a\\b", "a\0b", "a\nb", "x" * 256, "ü" * 128, None, 3]
)
def test_what_is_no_name_of_a_file_is_refused(name: object) -> None:
    with pytest.raises(BadOption, match=r"^name: "):
        check_file_name(name)


async def test_wrong_options_are_named(records: Records) -> None:
    wrong: list[tuple[str, Any]] = [
        ("name", "../x"), ("mime", "nonsense"), ("mime", "a/b\r\nX: y"), ("metadata", {"x": object()}),
        ("metadata", {"x": "y" * 20_000}),
    ]  # fmt: skip
    usual: dict[str, Any] = {"name": "a.txt", "data": b"x"}
    for option, value in wrong:
        with pytest.raises(BadOption, match=f"^{option}: "):
            await records.files.add_input("acme", **{**usual, option: value})
        with pytest.raises(BadOption, match=f"^{option}: "):
            await records.files.keep_artifact("t1", "k", **{**usual, option: value})
    assert await blobs_of(records) == set()


async def test_wrong_settings_are_named(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("0", "-1", "much", "9999999999"):
        monkeypatch.setenv("BULLPEN_FILE_MB", value)
        with pytest.raises(BadOption, match="BULLPEN_FILE_MB"):
            await records.files.add_input("acme", "a", b"x")
        monkeypatch.setenv("BULLPEN_RUN_FILES_DAYS", value)
        with pytest.raises(BadOption, match="BULLPEN_RUN_FILES_DAYS"):
            await records.files.expire()


@pytest.mark.parametrize(
    "name, mime, expected",
    [
        ("a.png", "application/octet-stream", FileType.IMAGE),
        ("a", "image/webp", FileType.IMAGE),
        ("deck.pptx", "application/zip", FileType.SLIDE_DECK),
        ("deck", "application/vnd.openxmlformats-officedocument.presentationml.presentation", FileType.SLIDE_DECK),
        ("letter.docx", "application/octet-stream", FileType.DOCUMENT),
        ("letter", "application/pdf; charset=x", FileType.DOCUMENT),
        ("main.py", "text/plain", FileType.CODE),
        ("main", "text/x-python", FileType.CODE),
        ("data.bin", "application/octet-stream", FileType.FILE),
        ("table.csv", "text/csv", FileType.FILE),
    ],
)
def test_the_type_comes_from_name_and_mime(name: str, mime: str, expected: FileType) -> None:
    assert type_of(name, mime) is expected


# ── who sees what ────────────────────────────────────────────────────────────────────────


async def test_another_tenants_file_is_not_there(records: Records) -> None:
    await make_run(records)
    made = await records.files.keep_artifact("t1", "k", "a.txt", b"one")
    for ask in (records.files.get, records.files.read):
        with pytest.raises(RecordMissing):
            await ask(made.id, tenant="other")
    with pytest.raises(RecordMissing):
        await anext(records.files.parts(made.id, tenant="other"))
    assert await records.files.of_run("r1", tenant="other") == []
    assert (await records.files.page(tenant="other")).files == ()


async def test_pages_go_from_the_newest_to_the_oldest(records: Records, clock: ManualClock) -> None:
    made = []
    for n in range(5):
        made.append(await records.files.add_input("acme", f"{n}.txt", b"%d" % n))
        clock.advance(n % 2)
    found: list[RunFile] = []
    cursor: str | None = None
    while True:
        page = await records.files.page(tenant="acme", kind=FileKind.INPUT, limit=2, cursor=cursor)
        found += page.files
        if (cursor := page.cursor) is None:
            break
    assert sorted(one.id for one in found) == sorted(one.id for one in made)
    assert [one.created_ms for one in found] == sorted((one.created_ms for one in made), reverse=True)
    bad: list[dict[str, Any]] = [{"limit": 0}, {"cursor": "x"}]
    for wrong in bad:
        with pytest.raises(BadOption):
            await records.files.page(**wrong)
