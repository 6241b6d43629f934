"""The workspace of a task: as it was left, whoever goes on with it; saved whole, or the run stops."""

import asyncio
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen import CheckpointFailed, CheckpointMissing, LeaseLost, SandboxRefused, WorkspaceUnsaved
from bullpen.agents.checkpoints import Workspace
from bullpen.agents.layers import Layers
from bullpen.agents.manifest import SMALL
from bullpen.agents.sandbox import SandboxPool
from bullpen.records.files.on import FilesOn
from bullpen.records.files.words import FileKind
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from tests.records.files.runs import make_run

MakeWorkspace = Callable[..., Workspace]


async def _sh(workspace: Workspace, script: str) -> str:
    outcome = await (await workspace.sandbox()).run(["sh", "-c", script])
    assert outcome.ok, outcome
    return outcome.stdout.decode("utf-8", "surrogateescape")


async def _blobs(records: Records) -> set[str]:
    return {found.name async for found in records.files.blobs.all()}


async def _activation(records: Records, epoch: int) -> None:
    async with records.database.writing() as connection:
        await JournalOn(connection, records.database).begin("t1", epoch)


async def test_the_next_activation_finds_what_the_last_one_left(make: MakeWorkspace, records: Records) -> None:
    """Files, folders, modes, links of both kinds, names that are no text, times."""
    first = make()
    await _sh(
        first,
        "mkdir -p a/b empty; echo hello > a/b/c; chmod 750 a/b/c; ln -s a/b/c soft; ln a/b/c hard; : > nothing; "
        "head -c 600000 /dev/urandom > large; printf x > $(printf 'caf\\351'); touch -d @1000000000 a/b/c",
    )
    look = (
        "find . -mindepth 1 ! -type l -exec stat -c '%n %A %s %h' {} + | sort; stat -c %Y a/b/c; readlink soft; "
        "cat soft hard; sha256sum large"
    )
    before = await _sh(first, look)
    saved = await first.save(4)
    assert saved is not None
    assert saved.place == 4
    await first.close()
    second = make()
    assert await _sh(second, look) == before
    assert await second.save(6) is None, "nothing has changed"
    told = [event.kind for event in await records.runs.events("r1")]
    assert told.count(ProgressKind.CHECKPOINT_SAVED) == 1


async def test_no_sandbox_is_lent_before_a_tool_asks(make: MakeWorkspace, pool: SandboxPool) -> None:
    workspace = make()
    assert await workspace.save(1) is None
    assert pool.stats().in_use == 0
    assert await workspace.sandbox() is await workspace.sandbox()
    assert pool.stats().in_use == 1
    await workspace.close()
    await workspace.close()
    assert pool.stats().in_use == 0


async def test_only_what_changed_is_kept_again(make: MakeWorkspace, records: Records) -> None:
    workspace = make()
    await _sh(workspace, "for n in $(seq 200); do echo $n > $n.txt; done; head -c 600000 /dev/urandom > large")
    await workspace.save(1)
    first = await _blobs(records)
    assert len(first) == 3, "a pack of the small files, the large one, the manifest"
    await _sh(workspace, "cat large > /dev/null")
    assert await workspace.save(2) is None
    assert await _blobs(records) == first
    await _sh(workspace, "echo other > 7.txt; cp large copy; rm 8.txt")
    await workspace.save(3)
    new = await _blobs(records) - first
    assert len(new) == 2, "a pack of one small file, the manifest"
    sizes = [len(await records.files.blobs.get(name)) for name in new]
    assert min(sizes) == len("other\n")


async def test_a_long_run_is_read_from_a_few_blobs(make: MakeWorkspace, records: Records) -> None:
    """So that what it takes to restore it does not grow with the number of steps."""
    workspace = make()
    for n in range(35):
        await _sh(workspace, f"echo {n} > {n}.txt")
        await workspace.save(n)
    newest = await records.files.checkpoint("t1")
    assert newest is not None
    loaded = (await Layers.load(records.files.blobs, newest.sha256)).newest
    assert loaded is not None
    assert len(loaded.blobs) <= 2 * math.log2(35)
    await workspace.close()
    assert await _sh(make(), "cat *.txt | sort -n | tail -1; ls | wc -l") == f"{n}\n{n + 1}\n"


async def test_each_step_can_be_gone_back_to(make: MakeWorkspace, records: Records, tmp_path: Path) -> None:
    """Also what was changed, put elsewhere, linked, made something else and removed since."""
    workspace = make()
    changes = [
        "mkdir -p a/b; echo 1 > a/b/c; echo 1 > n; head -c 300000 /dev/urandom > large",
        "echo 2 > n; ln a/b/c hard; ln -s n soft; mv large a",
        "rm -r a/b; mkfifo pipe; rm soft; mkdir soft; echo in > soft/er",
        "rm hard pipe; mv n pipe; rm a/large; chmod 600 soft/er",
        "rm -r soft; echo soft > soft; : > a/empty",
    ]
    look = "find . -mindepth 1 ! -type p ! -type l -exec stat -c '%n %A %h' {} + | sort; "
    look += "find . -type f | sort | xargs cat | md5sum"
    seen = []
    for place, change in enumerate(changes):
        await _sh(workspace, change)
        seen.append(await _sh(workspace, look))
        await workspace.save(place)
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))
    await records.files.expire()
    for place, expected in enumerate(seen):
        await make_run(records, run=f"r{place}0", task=f"t{place}0")
        async with records.database.writing() as connection:
            on = FilesOn(connection, records.database, records.files.blobs)
            assert await on.copy_checkpoint("t1", f"t{place}0", before=place + 1)
        forked = make(task_id=f"t{place}0")
        assert await _sh(forked, look) == expected
        await forked.close()


async def test_what_is_written_by_way_of_memory_is_seen(make: MakeWorkspace) -> None:
    """It leaves a file of a file system in memory with the times that it had."""
    program = (
        "import mmap\nwith open('n', 'r+b') as file, mmap.mmap(file.fileno(), 0) as held:\n"
        "    before = held[0]\n    held[0] = before + 1"
    )
    workspace = make()
    await _sh(workspace, "echo 1 > n")
    await workspace.save(1)
    await _sh(workspace, f'python3 -c "{program}"')
    assert await workspace.save(2) is not None
    await workspace.close()
    assert await _sh(make(), "cat n") == "2\n"


async def test_only_what_changed_leaves_the_sandbox(make: MakeWorkspace) -> None:
    workspace = make()
    await _sh(workspace, "for n in $(seq 50); do head -c 10000 /dev/urandom > $n; done")
    sandbox = await workspace.sandbox()
    first = await sandbox.changes()
    await _sh(workspace, "echo 1 > 7; rm 8")
    second = await sandbox.changes(first.mark)
    assert (first.is_all, second.is_all, second.gone) == (True, False, frozenset([b"./8"]))
    assert len(first.archive) > 500_000
    assert len(second.archive) < 1_000
    assert (await sandbox.changes(first.mark)).is_all, "what was told before is not known any more"


async def test_states_that_hold_too_much_go(make: MakeWorkspace, records: Records) -> None:
    """A run that writes a large file anew with each step does not keep all that it ever was."""
    workspace = make()
    for place in range(16):
        await _sh(workspace, "head -c 7000000 /dev/urandom > large")
        await workspace.save(place)
    async with records.database.reading() as connection:
        on = FilesOn(connection, records.database, records.files.blobs)
        kept = [await on.checkpoint("t1", before=place + 1) for place in range(16)]
    assert kept[0] is None
    assert kept[-2] is not None
    assert kept[-1] is not None
    before = await _sh(workspace, "md5sum large")
    await workspace.close()
    assert await _sh(make(), "md5sum large") == before


async def test_what_was_not_saved_is_gone(make: MakeWorkspace) -> None:
    first = make()
    await _sh(first, "echo 1 > n")
    await first.save(1)
    await _sh(first, "echo 2 > n; echo x > more")
    await first.close()
    assert await _sh(make(), "cat n; ls") == "1\nn\n"


async def test_a_sandbox_that_broke_is_replaced_by_what_was_saved(make: MakeWorkspace) -> None:
    workspace = make()
    await _sh(workspace, "echo 1 > n")
    await workspace.save(1)
    await (await workspace.sandbox()).kill()
    assert await _sh(workspace, "cat n") == "1\n"


async def test_a_sandbox_that_broke_before_it_was_saved_stops_the_run(make: MakeWorkspace, records: Records) -> None:
    workspace = make()
    await _sh(workspace, "echo 1 > n")
    await (await workspace.sandbox()).kill()
    with pytest.raises(CheckpointFailed, match="t1") as failed:
        await workspace.save(1)
    assert failed.value.agent_code == "E013"
    assert failed.value.retryable
    assert await records.files.checkpoint("t1") is None


async def test_blobs_that_cannot_be_written_stop_the_run(make: MakeWorkspace, records: Records, tmp_path: Path) -> None:
    workspace = make()
    await _sh(workspace, "echo 1 > n")
    (tmp_path / "blobs").write_text("no folder")
    with pytest.raises(CheckpointFailed, match="blobs"):
        await workspace.save(1)
    assert await records.files.checkpoint("t1") is None
    (tmp_path / "blobs").unlink()
    assert await workspace.save(1) is not None, "it may be tried again"


async def test_an_activation_that_was_overtaken_saves_nothing(make: MakeWorkspace, records: Records) -> None:
    await _activation(records, 1)
    first = make(epoch=1)
    await _sh(first, "echo 1 > n")
    await first.save(1)
    await _sh(first, "echo late > n")
    await _activation(records, 2)
    with pytest.raises(LeaseLost):
        await first.save(3)
    second = make(epoch=2)
    assert await _sh(second, "cat n") == "1\n"
    with pytest.raises(LeaseLost):
        await first.keep_file("t1/1", "a.txt", b"x", mime="text/plain")
    assert await second.keep_file("t1/1", "a.txt", b"x", mime="text/plain")


@pytest.mark.parametrize("how", ["missing", "damaged"])
async def test_a_checkpoint_that_is_gone_is_told(make: MakeWorkspace, tmp_path: Path, how: str) -> None:
    first = make()
    await _sh(first, "echo 1 > n")
    saved = await first.save(1)
    assert saved is not None
    await first.close()
    if how == "missing":
        shutil.rmtree(tmp_path / "blobs")
    else:
        (tmp_path / "blobs" / saved.sha256[:2] / saved.sha256[2:]).write_bytes(b"\0spoilt")
    with pytest.raises(CheckpointMissing, match=saved.id) as gone:
        await make().sandbox()
    assert gone.value.agent_code == "E013"
    assert not gone.value.retryable


async def test_of_two_saved_side_by_side_the_later_stays(make: MakeWorkspace, records: Records) -> None:
    """The row of the earlier may be the last to be written; what it saw is less."""
    workspace = make()
    await _sh(workspace, "echo 1 > one")
    earlier = await workspace.stage(1)
    await _sh(workspace, "echo 2 > two")
    later = await workspace.stage(3)
    assert earlier is not None
    assert later is not None
    for row in (later, earlier):
        async with records.database.writing() as connection:
            await row(connection)
    await workspace.close()
    assert await _sh(make(), "ls") == "one\ntwo\n"


async def test_many_tools_at_once_share_one_sandbox(make: MakeWorkspace, pool: SandboxPool) -> None:
    workspace = make()
    lent = await asyncio.gather(*(workspace.sandbox() for _ in range(5)))
    assert len({one.id for one in lent}) == 1
    assert pool.stats().acquired == 1


async def test_input_files_are_shown_and_cannot_be_changed(make: MakeWorkspace, records: Records) -> None:
    await records.files.add_input("acme", "data.csv", b"a,b\n1,2\n", run="r1")
    await records.files.add_input("acme", "data.csv", b"other\n", run="r1")
    left_out = await records.files.add_input("acme", "secret.csv", b"x", run="r1")
    given = [one.id for one in await records.files.of_run("r1", kind=FileKind.INPUT) if one.id != left_out.id]
    workspace = make(inputs=given)
    found = await _sh(workspace, "ls /inputs; cat /inputs/*; ls -A")
    assert sorted(found.split()) == sorted(["data-2.csv", "data.csv", "a,b", "1,2", "other"])
    sandbox = await workspace.sandbox()
    assert not (await sandbox.run(["sh", "-c", "echo x > /inputs/data.csv"])).ok
    with pytest.raises(SandboxRefused):
        await sandbox.write("/inputs/data.csv", b"x")
    await workspace.save(1)
    await workspace.close()
    assert await _sh(make(), "ls /inputs | wc -l") == "3\n"


async def test_a_large_file_that_only_moved_is_not_kept_again(make: MakeWorkspace, records: Records) -> None:
    workspace = make()
    await _sh(workspace, f"head -c {SMALL + 1} /dev/urandom > large")
    await workspace.save(1)
    before = await _blobs(records)
    await _sh(workspace, "mkdir deep; mv large deep/er")
    await workspace.save(2)
    assert len(await _blobs(records) - before) == 1


async def test_what_code_made_unreadable_is_saved_too(make: MakeWorkspace) -> None:
    first = make()
    await _sh(first, "mkdir -p shut/deep; echo 1 > shut/deep/n; echo 2 > n; chmod 000 n shut/deep shut")
    assert await first.save(1) is not None
    assert await first.save(2) is None, "nothing has changed"
    await first.close()
    assert await _sh(make(), "cat shut/deep/n n") == "1\n2\n"


async def test_what_cannot_be_reached_is_left_out(make: MakeWorkspace, caplog: pytest.LogCaptureFixture) -> None:
    """Folders in folders until no path is long enough: what is beside them is safe."""
    first = make()
    await _sh(
        first,
        'echo 1 > n; python3 -c \'import os\nfor _ in range(60): os.mkdir("d" * 100); os.chdir("d" * 100)\'',
    )
    assert await first.save(1) is not None
    assert "cannot be read" in caplog.text
    await first.close()
    assert await _sh(make(), "cat n") == "1\n"


async def test_more_than_can_be_saved_is_told_until_it_is_gone(make: MakeWorkspace, records: Records) -> None:
    workspace = make()
    await _sh(workspace, "echo 1 > n")
    before = await workspace.save(1)
    await _sh(workspace, "truncate -s 15M hole1 hole2 hole3; echo 2 > n")
    with pytest.raises(WorkspaceUnsaved, match="larger"):
        await workspace.save(2)
    assert await records.files.checkpoint("t1") == before
    await _sh(workspace, "rm hole*")
    assert await workspace.save(3) is not None
