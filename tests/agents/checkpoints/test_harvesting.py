"""What a run leaves in its workspace: artifacts, once, within bounds, and nothing that it was given."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen import BadOption, CheckpointFailed, CheckpointMissing, LeaseLost
from bullpen.agents.checkpoints import Workspace
from bullpen.agents.harvesting import Harvest, harvest
from bullpen.records.files.on import FilesOn
from bullpen.records.files.words import FileKind, RunFile
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from tests.records.files.runs import make_run

MakeWorkspace = Callable[..., Workspace]


async def _left(workspace: Workspace, script: str) -> None:
    """A step that does this, saved."""
    outcome = await (await workspace.sandbox()).run(["sh", "-c", script])
    assert outcome.ok, outcome
    await workspace.save(1)


async def _harvest(records: Records, rules: Harvest | None = None, *, epoch: int | None = None) -> list[RunFile]:
    return await harvest(records.files, await records.runs.task("t1"), rules or Harvest(), epoch=epoch)


async def _paths(records: Records) -> list[str]:
    made = await records.files.of_run("r1", kind=FileKind.ARTIFACT)
    return sorted(one.metadata["path"] for one in made)


async def test_what_is_left_is_kept_typed_and_readable(make: MakeWorkspace, records: Records) -> None:
    await _left(make(), "echo a,b > sales.csv; mkdir -p out; echo '# May' > out/report.md; echo 1 > out/sales.csv")
    made = await _harvest(records)
    assert await _paths(records) == ["out/report.md", "out/sales.csv", "sales.csv"]
    by_path = {one.metadata["path"]: one for one in made}
    assert (by_path["sales.csv"].mime, by_path["out/report.md"].type) == ("text/csv", "document")
    assert await records.files.read(by_path["out/sales.csv"].id, tenant="acme") == b"1\n"
    told = [event.data["name"] for event in await records.runs.events("r1") if event.kind == "artifact_created"]
    assert sorted(told) == ["report.md", "sales.csv", "sales.csv"]


async def test_a_large_file_and_an_empty_one(make: MakeWorkspace, records: Records) -> None:
    await _left(make(), "head -c 600000 /dev/zero > large.bin; : > empty.txt")
    assert sorted((one.name, one.size) for one in await _harvest(records)) == [("empty.txt", 0), ("large.bin", 600_000)]


async def test_again_after_a_crash_nothing_is_kept_twice(make: MakeWorkspace, records: Records) -> None:
    await _left(make(), "echo 1 > a.txt; echo 2 > b.txt")
    first = await _harvest(records)
    assert await _harvest(records) == first
    assert len(await records.files.of_run("r1", kind=FileKind.ARTIFACT)) == 2


async def test_hidden_files_caches_links_and_odd_names_are_left_out(make: MakeWorkspace, records: Records) -> None:
    script = (
        "echo 1 > .env; mkdir -p .git a/__pycache__ node_modules/x; echo 1 > .git/config; echo 1 > a/__pycache__/a.pyc;"
        "echo 1 > node_modules/x/index.js; ln -s /etc/passwd link; printf x > $(printf 'caf\\351'); echo 1 > a/kept.txt"
    )
    await _left(make(), script)
    await _harvest(records)
    assert await _paths(records) == ["a/kept.txt"]


async def test_what_the_run_was_given_is_no_work_of_its_own(make: MakeWorkspace, records: Records) -> None:
    await records.files.add_input("acme", "data.csv", b"month,sum\n", run="r1")
    await _left(make(), "cp /inputs/data.csv copy.csv; (cat /inputs/data.csv; echo may,7) > changed.csv")
    await _harvest(records)
    assert await _paths(records) == ["changed.csv"]


async def test_too_many_and_too_large_are_told(make: MakeWorkspace, records: Records) -> None:
    await _left(make(), "echo 1 > a; head -c 2000000 /dev/zero > b; echo 3 > c; echo 4 > d")
    await _harvest(records, Harvest(files=2, file_mb=1))
    assert await _paths(records) == ["a", "c"]
    told = (await records.runs.events("r1"))[-1]
    assert told.kind is ProgressKind.JOB_PROGRESS
    assert told.data == {"message": "too many or too large to be kept: b, d"}


async def test_a_file_that_no_file_may_be_is_left_out(
    make: MakeWorkspace, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_FILE_MB", "1")
    await _left(make(), "echo 1 > a; head -c 2000000 /dev/zero > b")
    await _harvest(records)
    assert await _paths(records) == ["a"]


async def test_none_if_so_told_or_nothing_was_saved(make: MakeWorkspace, records: Records) -> None:
    assert await _harvest(records) == []
    await _left(make(), "echo 1 > a")
    assert await _harvest(records, Harvest(files=0)) == []


async def test_an_activation_that_was_overtaken_keeps_nothing(make: MakeWorkspace, records: Records) -> None:
    async with records.database.writing() as connection:
        await JournalOn(connection, records.database).begin("t1", 1)
    await _left(make(epoch=1), "echo 1 > a")
    async with records.database.writing() as connection:
        await JournalOn(connection, records.database).begin("t1", 2)
    with pytest.raises(LeaseLost):
        await _harvest(records, epoch=1)
    assert await _paths(records) == []


async def test_blobs_that_are_away_or_gone(make: MakeWorkspace, records: Records, tmp_path: Path) -> None:
    """Away, it may be tried again; gone, it may not."""
    await _left(make(), "echo 1 > a")
    shutil.move(tmp_path / "blobs", tmp_path / "elsewhere")
    (tmp_path / "blobs").write_text("no folder")
    with pytest.raises(CheckpointFailed) as failed:
        await _harvest(records)
    assert failed.value.retryable
    (tmp_path / "blobs").unlink()
    (tmp_path / "blobs").mkdir()
    with pytest.raises(CheckpointMissing):
        await _harvest(records)


async def test_an_artifact_is_given_to_another_run(make: MakeWorkspace, records: Records) -> None:
    """As an input of its own, which stays when the first run goes."""
    await _left(make(), "echo a,b > sales.csv")
    (made,) = await _harvest(records)
    await make_run(records, "r2", "t2")
    async with records.database.writing() as connection:
        (given,) = await FilesOn(connection, records.database, records.files.blobs).attach(
            "r2", [made.id], tenant="acme"
        )
    assert (given.kind, given.run, given.task, given.name) == (FileKind.INPUT, "r2", None, "sales.csv")
    assert given.id != made.id
    assert await records.files.of_run("r2") == [given]
    assert (await records.files.get(made.id)).run == "r1"


def test_bounds_that_make_no_sense() -> None:
    for options in ({"files": -1}, {"file_mb": 0}, {"all_mb": True}):
        with pytest.raises(BadOption):
            Harvest(**options)
