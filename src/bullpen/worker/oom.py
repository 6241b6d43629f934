"""Telling a kill for memory from any other kill: the kernel counts the former."""

import time
from pathlib import Path

_TOGETHER_S = 5.0
"""When memory runs out, the kernel may kill several at once; each is asked about within this time."""


class OomWatch:
    """Whether a kill that was just seen is one more of those for memory that the kernel counts."""

    def __init__(self, counters: tuple[Path, ...] | None = None) -> None:
        self._counters = _own_counters() if counters is None else counters
        self._seen = self._count()
        self._more = 0
        """That were seen and not asked about yet."""
        self._more_until_s = 0.0

    def happened(self) -> bool:
        now_s = time.monotonic()
        before, self._seen = self._seen, self._count()
        if now_s > self._more_until_s:
            self._more = 0
        if self._seen > before:
            self._more += self._seen - before
            self._more_until_s = now_s + _TOGETHER_S
        if self._more == 0:
            return False
        self._more -= 1
        return True

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
