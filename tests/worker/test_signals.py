"""Signals to processes of our own."""

import asyncio
import os
import signal
import sys
import threading

import pytest

from bullpen.worker.signals import tell


async def test_who_ends_as_it_is_told_keeps_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for it gets the code, though it had ended when the signal was sent."""
    told, wait = threading.Event(), os.waitpid

    def wait_until_told(pid: int, options: int) -> tuple[int, int]:
        told.wait(60)
        return wait(pid, options)

    monkeypatch.setattr(os, "waitpid", wait_until_told)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(3)")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    tell(process, signal.SIGTERM)
    told.set()
    assert await process.wait() == 3
    tell(process, signal.SIGTERM)
