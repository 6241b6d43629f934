"""The limit: a bare prototype of the same life cycle, kept apart from this repository.

`BULLPEN_LIMIT` or `--limit` says where it is. Without it, its rows say "not measured".
"""

import os
import sys
from pathlib import Path

from benchmarks.children import ROOT, Answer, ask


def find_limit(given: Path | None) -> Path:
    return given or Path(os.environ.get("BULLPEN_LIMIT") or ROOT.parent / "shared" / "tools" / "limit.py")


async def run_limit(script: Path, path: Path, *, sync: str, batch: int, jobs: int) -> Answer:
    """Its figures: `add_per_s` and `drain_per_s`."""
    return await ask(sys.executable, script, "sqlite", path, "--sync", sync, "--batch", str(batch), "--jobs", str(jobs))


async def run_limit_on_redis(script: Path, url: str, *, batch: int, jobs: int) -> Answer:
    """Its figures: `add_per_s`, `drain_per_s` and `store_us_per_job` of the drain."""
    return await ask(sys.executable, script, "redis", url, "--batch", str(batch), "--jobs", str(jobs))
