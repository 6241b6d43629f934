"""Who has which sandbox on this machine: a folder of small files, so that a worker finds those of a dead one."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bullpen.agents.sandbox.base import Driver
from bullpen.agents.sandbox.processes import boot_id, is_alive, process_namespace, start_time
from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import SandboxUnavailable
from bullpen.settings import told

FOLDER = "BULLPEN_SANDBOX_DIR"
_ENDING = ".json"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One sandbox, and the process that answers for it."""

    id: str
    driver: str
    owner: str
    """The worker's name."""
    owner_pid: int
    owner_started: int
    boot: str
    namespace: str
    made_ms: int
    token: dict[str, str | int] = {}
    """What its driver needs to end it."""

    def owner_is_alive(self) -> bool:
        return self.boot == boot_id() and is_alive(self.owner_pid, self.owner_started)


class Registry:
    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _usual_folder()

    def open(self) -> None:
        """Make the folder. What is in it says what to kill, so it must be ours alone."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = self.folder.lstat()
        if about.st_uid != os.geteuid() or about.st_mode & 0o022 or self.folder.is_symlink():
            raise SandboxUnavailable(f"{FOLDER}: {self.folder} can be written by others")

    def enter(self, id: str, driver: str, owner: str, token: dict[str, str | int]) -> None:  # noqa: A002
        """Note a sandbox as this process's; again, with what is known by then."""
        entry = Entry(
            id=id,
            driver=driver,
            owner=owner,
            owner_pid=os.getpid(),
            owner_started=start_time(os.getpid()) or 0,
            boot=boot_id(),
            namespace=process_namespace(),
            made_ms=SYSTEM_CLOCK.now_ms(),
            token=token,
        )
        new = self.folder / f".{id}.new"
        new.write_bytes(msgspec.json.encode(entry))
        new.rename(self.folder / f"{id}{_ENDING}")

    def leave(self, id: str) -> None:  # noqa: A002
        (self.folder / f"{id}{_ENDING}").unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """All on this machine, the oldest first."""
        found = []
        for path in self.folder.glob(f"*{_ENDING}"):
            with contextlib.suppress(FileNotFoundError):  # it was given back meanwhile
                try:
                    found.append(msgspec.json.decode(path.read_bytes(), type=Entry))
                except msgspec.DecodeError:
                    path.unlink(missing_ok=True)  # cut off by a full disk; it names nothing
        return sorted(found, key=lambda entry: entry.made_ms)

    async def reap(self, driver: Driver) -> list[Entry]:
        """End what is left of sandboxes whose owners died; none if another worker is at it."""
        reaped = []
        with self._alone() as alone:
            for entry in self.entries() if alone else ():
                if entry.driver != driver.name or entry.namespace != process_namespace() or entry.owner_is_alive():
                    continue
                # After a restart of the machine the same numbers are other processes.
                local = {} if entry.boot == boot_id() else {"pid": 0, "started": 0}
                await driver.reap({**entry.token, "id": entry.id, **local})
                self.leave(entry.id)
                reaped.append(entry)
        return reaped

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        with (self.folder / ".reaping").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back when its holder dies
            except BlockingIOError:
                yield False
            else:
                yield True


def _usual_folder() -> Path:
    if said := told(FOLDER):
        return Path(said)
    return Path(tempfile.gettempdir()) / f"bullpen-sandboxes-{os.geteuid()}"
