"""Prometheus's own program, which says what is wrong with metrics and rules."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def promtool(*words: str | Path, given: str | None = None) -> str:
    program = shutil.which("promtool")
    if program is None:
        if "CI" in os.environ:
            pytest.fail("promtool is missing: make servers")
        pytest.skip("promtool is missing: make servers")
    done = subprocess.run(
        [program, *map(str, words)], input=given, capture_output=True, text=True, check=False, timeout=60
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    return told
