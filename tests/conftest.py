"""For all tests."""

import gc
import os
import sys
import tempfile

from hypothesis import settings

from tests.support.memory import memory_folder

# A machine that is busy with other tests is no reason to fail.
settings.register_profile("bullpen", deadline=None)
settings.load_profile("bullpen")

# Tests start some thousand processes; where bytecode is not kept, each of them compiles the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No test cuts the power, and a commit that waits for no disk costs less: a database of PostgreSQL a sixth.
if "TMPDIR" not in os.environ and (_folder := memory_folder()):
    os.environ["TMPDIR"] = tempfile.tempdir = _folder


def pytest_collection() -> None:
    """What is collected stays: to look through it for garbage, now and in every test, is work for nothing."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
