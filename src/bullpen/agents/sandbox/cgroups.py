"""Control groups (version 2): memory, processes and cores, held by the kernel for all processes of a sandbox together.

They can be used where the administrator delegated a group to the worker, as systemd does with
`Delegate=yes`: a folder that the worker may write to, that has no processes of its own and hands
`memory` and `pids` on to the groups below it.
"""

import asyncio
import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from bullpen.agents.sandbox.limits import Limits

_PERIOD_US = 100_000
_NEEDED = {"memory", "pids"}
_TRIES, _PAUSE_S = 50, 0.02


@dataclass(frozen=True, slots=True)
class Group:
    """One sandbox's group."""

    path: Path

    def hold(self, pid: int, limits: Limits) -> None:
        """Make it, and put the sandbox's first process in; what that starts is in it too."""
        self.path.mkdir(exist_ok=True)
        # What is written to the workspace is memory, and is counted here.
        self._write("memory.max", limits.memory_bytes + 2 * limits.disk_bytes)
        self._write("memory.swap.max", 0)
        self._write("pids.max", limits.processes + 1)
        self._write("cpu.max", f"{round(limits.cpus * _PERIOD_US)} {_PERIOD_US}")
        (self.path / "cgroup.procs").write_text(str(pid))

    def _write(self, name: str, value: object) -> None:
        with contextlib.suppress(FileNotFoundError):  # a controller that is not handed on
            (self.path / name).write_text(str(value))

    def oom_kills(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            for line in (self.path / "memory.events").read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        return 0

    async def remove(self) -> None:
        """End what is left in it, and wait until it is gone; given up after a second."""
        for _ in range(_TRIES):
            with contextlib.suppress(OSError):
                (self.path / "cgroup.kill").write_text("1")
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                await asyncio.sleep(_PAUSE_S)  # its last process is not collected yet
            else:
                return


@dataclass(frozen=True, slots=True)
class Cgroups:
    """A delegated group, in which each sandbox gets one of its own."""

    path: Path

    @classmethod
    def find(cls, path: Path | None) -> "Cgroups | None":
        """The group at this path, or the worker's own; None if it cannot be used."""
        path = path or _own_group()
        if path is None or why_not(path):
            return None
        return cls(path)

    def group(self, name: str) -> Group:
        return Group(self.path / f"bullpen-{name}")


def why_not(path: Path | None = None) -> str:
    """Why control groups cannot be used; empty if they can."""
    path = path or _own_group()
    if path is None:
        return "there is no hierarchy of version 2"
    try:
        handed_on = set((path / "cgroup.subtree_control").read_text().split())
    except OSError:
        return f"{path} is no control group"
    if missing := sorted(_NEEDED - handed_on):
        return f"{path} does not hand on {' and '.join(missing)}"
    if not os.access(path, os.W_OK):
        return f"{path} was not delegated to this user"
    return ""


def _own_group() -> Path | None:
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    roots = [line.split()[4] for line in mounts if " - cgroup2 " in line]
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    return Path(roots[0] + own[0]) if roots and own else None
