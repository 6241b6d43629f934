"""How much memory this process uses."""

import os
import resource
import sys
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_mb() -> int:
    """Resident size now, where the system tells; else the highest so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // (1_048_576 if sys.platform == "darwin" else 1_024)
    return pages * _PAGE // 1_048_576
