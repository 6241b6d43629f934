"""Processes of this machine, told apart from later ones with the same number."""

import contextlib
import os
import select
import signal
from pathlib import Path

_STARTED = 19
"""Its place in /proc/PID/stat, counted after the program's name."""
_END_MS = 5_000
"""How long a killed process is waited for: the kernel may take a while to tear its namespaces down."""


def start_time(pid: int) -> int | None:
    """When the process started, in ticks since the machine did; None if there is no such process, or it is a zombie."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if numbers[0] in "ZX" else int(numbers[_STARTED])


def is_alive(pid: int, started: int) -> bool:
    return start_time(pid) == started


def end_process(pid: int, started: int) -> bool:
    """Kill that very process, and wait until it has ended; false if it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Asked after the handle was taken, so that the number cannot change hands in between.
        if not is_alive(pid, started):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        ended.poll(_END_MS)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def marked(mark: str) -> list[tuple[int, int]]:
    """The processes that were started with this word in their environment, and when they were."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended, or is another user's
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((int(folder.name), start_time(int(folder.name)) or 0))
    return found


def boot_id() -> str:
    """Another one after each start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_namespace() -> str:
    """Numbers of processes mean something within it only."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
