"""How long it takes to import Bullpen and to ask its command for help: medians of many fresh processes.

python -m benchmarks.startup [runs]
"""

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

RUNS = 15


def median_s(command: Sequence[str], runs: int) -> float:
    """The median time of that many runs, after one that warms the disk's cache."""
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    bare = median_s([sys.executable, "-c", "pass"], runs)
    commands = {
        "import bullpen": [sys.executable, "-c", "import bullpen"],
        "import bullpen.testing.plugin": [sys.executable, "-c", "import bullpen.testing.plugin"],
    }
    script = shutil.which("bullpen", path=str(Path(sys.executable).parent))
    if script is not None:
        commands["bullpen --help"] = [script, "--help"]
    print(f"{'python alone':<32} {bare * 1000:6.0f} ms")
    for name, command in commands.items():
        took = median_s(command, runs)
        print(f"{name:<32} {took * 1000:6.0f} ms, {(took - bare) * 1000:.0f} ms over python alone")


if __name__ == "__main__":
    main()
