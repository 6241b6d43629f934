"""What only a process of its own can show: programs that tests start by name.

python -m tests.support.programs <program> <argument> …
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from bullpen import BullpenError, JobOptions, JobRef, NewJob, Queue, SqliteStore, Store, StoreFull
from bullpen.stores.sqlite.presence import Presence

ROOT = Path(__file__).parents[2]
LONG_LEASE_MS = 3_600_000
_NOBODY = 65534
_PAGE = 4096

Program = Callable[..., Awaitable[None]]


# ── for tests ────────────────────────────────────────────────────────────────────────────


def command(program: Program, *arguments: object) -> list[str]:
    # From Python 3.12 on a fork beside threads warns; here it is the very thing to be tried.
    interpreter = [sys.executable, "-W", "ignore::DeprecationWarning"]
    return [*interpreter, "-m", "tests.support.programs", program.__name__, *map(str, arguments)]


async def start(words: list[str]) -> asyncio.subprocess.Process:
    """Start a command that can be talked to."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdin=pipe, stdout=pipe)


async def run(words: list[str]) -> str:
    """Run a command to its end, which must be a good one; what it printed."""
    process = await start(words)
    try:
        printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, f"{words} ended with {process.returncode}"
    return printed.decode()


def with_own_mounts() -> list[str] | None:
    """The start of a command whose mounts nobody else sees; None where the system does not allow it."""
    if shutil.which("unshare") is None:
        return None
    words = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    probe = subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return words if probe.returncode == 0 else None


# ── what the programs share ──────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def _opened(path: str | Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def _claim_one(store: Store) -> JobRef:
    claimed = await store.claim({"work": 1}, worker="doomed", lease_ms=LONG_LEASE_MS, request="claim")
    (job,) = claimed.jobs
    return job.lease.ref


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _error_of(asked: Awaitable[object]) -> dict[str, str] | None:
    try:
        await asked
    except BullpenError as error:
        return {"code": error.code, "message": str(error)}
    return None


# ── producing ────────────────────────────────────────────────────────────────────────────


async def add_many(path: str, how_many: str) -> None:
    """Add that many jobs, ten at a time; print their ids."""
    async with _opened(path) as store:
        queue = Queue(store, "work")
        for _ in range(int(how_many) // 10):
            jobs = await asyncio.gather(*[queue.add("one", {"pid": os.getpid()}) for _ in range(10)])
            print(*[job.id for job in jobs], sep="\n")


async def add_when_told(path: str) -> None:
    """Say when ready; add one job for a line that is sent."""
    async with _opened(path) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        await Queue(store, "work").add("one")


# ── dying ────────────────────────────────────────────────────────────────────────────────


async def claim_and_die(path: str) -> None:
    async with _opened(path) as store:
        await _claim_one(store)
        _die()


async def claim_and_die_before_the_answer(path: str) -> None:
    async with _opened(path) as store:
        Presence.mark_received = lambda self, claim: _die()  # type: ignore[method-assign]
        await _claim_one(store)


async def claim_and_fork_and_die(path: str) -> None:
    """The forked child lives on, with all that it inherited, until its input ends."""
    async with _opened(path) as store:
        await _claim_one(store)
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(1)  # whoever reads the parent's output is to see its end
            os.write(writing, b"!")
            os.read(0, 1)
            os._exit(0)
        os.read(reading, 1)
        _die()


# ── forking ──────────────────────────────────────────────────────────────────────────────


async def fork_while_open(path: str) -> None:
    """Print what a child meets that was forked while the file was open."""
    async with _opened(path) as store:
        await Queue(store, "work").add("parent", id="before-fork")
        child = os.fork()
        if child == 0:
            asyncio.run(_use_what_was_inherited(store, path))
            os._exit(0)
        os.waitpid(child, 0)
        await Queue(store, "work").add("parent", id="after-fork")


async def _use_what_was_inherited(store: SqliteStore, path: str) -> None:
    async with asyncio.timeout(60), _opened(f"{path}-of-the-child") as other:
        met = {
            "write": await _error_of(Queue(store, "work").add("child")),
            "read": await _error_of(Queue(store, "work").counts()),
            "open": await _error_of(SqliteStore(path).open()),
            "other file": await _error_of(Queue(other, "work").add("child")),
        }
        await store.close()  # must neither hang nor disturb the parent
    print(json.dumps(met), flush=True)


async def fork_before_open(path: str) -> None:
    """A file that was open once, but not at the fork, is free for both."""
    async with _opened(path) as store:
        await Queue(store, "work").add("one", id="before-fork")
    child = os.fork()
    if child == 0:
        asyncio.run(_add(path, "of-the-child"))
        os._exit(0)
    await _add(path, "of-the-parent")
    _, status = os.waitpid(child, 0)
    assert status == 0


async def _add(path: str, job_id: str) -> None:
    async with _opened(path) as store:
        await Queue(store, "work").add("one", id=job_id)


# ── places that take no writes ───────────────────────────────────────────────────────────


async def open_without_rights(path: str) -> None:
    """Print the error that a user meets whom the permissions bind."""
    if os.geteuid() == 0:
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    print(json.dumps(await _error_of(SqliteStore(path).open())))


async def open_on_a_read_only_disk(folder: str) -> None:
    """Print the errors of opening a known and a new file on it, and of adding after it is writable again."""
    path = Path(folder) / "queue.db"
    _mount("-t", "tmpfs", "none", folder)
    await _add(str(path), "kept")
    _mount("-o", "remount,ro", folder)
    met = {
        "known": await _error_of(SqliteStore(path).open()),
        "new": await _error_of(SqliteStore(path.with_name("new.db")).open()),
    }
    _mount("-o", "remount,rw", folder)
    async with _opened(path) as store:
        queue = Queue(store, "work")
        await queue.add("one", id="later")
        found = [job.id for job in (await queue.jobs("waiting")).jobs]
    print(json.dumps({"errors": met, "found": found}))


async def fill_a_disk(folder: str) -> None:
    """Add until there is no room, make room, add again; print what happened."""
    _mount("-t", "tmpfs", "-o", "size=4m", "none", folder)
    ballast = Path(folder) / "ballast"
    ballast.write_bytes(bytes(1_000_000))
    async with _opened(Path(folder) / "queue.db") as store:
        queue = Queue(store, "work", defaults=JobOptions(attempts=3))
        added: list[str] = []
        full: StoreFull | None = None
        while full is None:
            try:
                added.append((await queue.add("big", "x" * 50_000)).id)
            except StoreFull as error:
                full = error
        counted = (await queue.counts()).waiting
        ballast.unlink()
        later = (await queue.add("big", "x" * 50_000)).id
    # Opened anew: what is on the disk, not what the process remembers.
    async with _opened(Path(folder) / "queue.db") as store:
        queue = Queue(store, "work")
        intact = [job.id for job in (await queue.jobs("waiting", limit=1_000)).jobs if len(job.data) == 50_002]
    answer = {"code": full.code, "message": str(full), "added": added, "counted": counted}
    print(json.dumps({**answer, "later": later, "intact": intact}))


async def open_on_a_full_disk(folder: str) -> None:
    """Print the errors of opening with no page of room, with one, with two …, and what a claim finds at last."""
    _mount("-t", "tmpfs", "-o", "size=4m", "none", folder)
    path = Path(folder) / "queue.db"
    await _add(str(path), "kept")
    ballast = _fill(Path(folder))
    met = []
    for _ in range(20):
        store = SqliteStore(path)
        met.append(await _error_of(store.open()))
        await store.close()
        os.truncate(ballast, ballast.stat().st_size - _PAGE)
    async with _opened(path) as store:
        found = await _claim_one(store)
    print(json.dumps({"errors": met, "found": found.id}))


async def claim_on_a_full_disk(folder: str) -> None:
    """The log has room of its own, so that the claim is made; print what came of it."""
    _mount("-t", "tmpfs", "-o", "size=4m", "none", folder)
    path = Path(folder) / "queue.db"
    async with _opened(path) as store:
        await Queue(store, "work").add_bulk([NewJob("work", "big", b"0" * 50_000) for _ in range(5)])
        db = sqlite3.connect(path)
        db.execute("PRAGMA wal_checkpoint")
        db.close()
        _fill(Path(folder))
        print((await _claim_one(store)).id)


def _fill(folder: Path) -> Path:
    """A file that takes all the room there is."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(_PAGE)):
            pass
    return ballast


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


async def run_out_of_files(path: str) -> None:
    """Use up all file handles of this process; adds go on, and nothing hangs."""
    import resource

    async with _opened(path) as store:
        await store.add([NewJob("work", "one")], request="before")
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        handles = []
        with contextlib.suppress(OSError):
            while True:
                handles.append(os.open(os.devnull, os.O_RDONLY))
        async with asyncio.timeout(60):
            await store.add([NewJob("work", "one")], request="after")
        for handle in handles:
            os.close(handle)
        print((await store.counts("work")).waiting)


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](*sys.argv[2:]))
