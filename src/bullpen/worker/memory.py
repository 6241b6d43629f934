"""How much memory a process uses."""

import os
import resource
import sys
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_mb(pid: int | None = None) -> int:
    """Resident size now, where the system tells; else this process's highest so far, and 0 of another one."""
    try:
        pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1])
    except OSError:
        if pid is not None:
            return 0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // (1_048_576 if sys.platform == "darwin" else 1_024)
    return pages * _PAGE // 1_048_576
