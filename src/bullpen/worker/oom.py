"""Telling a kill for memory from any other kill: the kernel counts the former."""

from pathlib import Path


class OomWatch:
    """Whether the kernel's count of kills for memory has grown since the last look."""

    def __init__(self, counters: tuple[Path, ...] | None = None) -> None:
        self._counters = _own_counters() if counters is None else counters
        self._seen = self._count()

    def happened(self) -> bool:
        before, self._seen = self._seen, self._count()
        return self._seen > before

    def _count(self) -> int:
        for path in self._counters:
            try:
                text = path.read_text()
            except OSError:
                continue
            for line in text.splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
        return 0


def _own_counters() -> tuple[Path, ...]:
    """Our control group's count if there is one, else the whole machine's."""
    try:
        group = Path("/proc/self/cgroup").read_text().strip().rpartition("::")[2]
    except OSError:
        group = ""
    return (Path(f"/sys/fs/cgroup{group}/memory.events"), Path("/proc/vmstat"))
