"""Who runs in the sandbox, what they use, and their end."""

import os
import resource
import signal

_PAGE = os.sysconf("SC_PAGE_SIZE")
_HZ = os.sysconf("SC_CLK_TCK")
_ALONE = os.getpid() == 1
_PARENT, _TIMES, _THREADS, _RESIDENT = 1, slice(11, 15), 17, 21
"""Places in /proc/PID/stat, counted after the program's name."""

Process = tuple[int, list[bytes]]
"""A process's id, and the numbers of its stat."""


def everyone() -> list[Process]:
    """All processes of the sandbox but this one."""
    found: dict[int, list[bytes]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                found[int(name)] = _numbers(name)
            except OSError:
                continue  # it ended meanwhile
    return list(found.items()) if _ALONE else _descendants(found)


def _numbers(pid: str) -> list[bytes]:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()  # the name before it may hold anything


def _descendants(found: dict[int, list[bytes]]) -> list[Process]:
    ours = {os.getpid()}
    while more := {pid for pid, numbers in found.items() if int(numbers[_PARENT]) in ours} - ours:
        ours |= more
    return [(pid, numbers) for pid, numbers in found.items() if pid in ours]


def kill_everyone() -> None:
    """End all that runs, and wait until it is gone."""
    while True:
        try:
            if _ALONE:
                os.kill(-1, signal.SIGKILL)  # reaches also what forks in this moment
            else:
                for pid, _ in everyone():
                    os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def threads_of(processes: list[Process]) -> int:
    return sum(int(numbers[_THREADS]) for _, numbers in processes)


def memory_of(processes: list[Process], limit: int) -> int:
    """Bytes in use; what processes share is counted once, if the quick sum is over the limit."""
    resident = {pid: int(numbers[_RESIDENT]) * _PAGE for pid, numbers in processes}
    total = sum(resident.values())
    return total if total <= limit else sum(_share(pid, most) for pid, most in resident.items())


def _share(pid: int, otherwise: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:")), otherwise)
    except OSError:
        return otherwise  # it hides, or it ended


def cpu_of(processes: list[Process]) -> float:
    """Seconds, of those that are gone too."""
    gone = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = sum(int(number) for _, numbers in processes for number in numbers[_TIMES])
    return gone.ru_utime + gone.ru_stime + living / _HZ
