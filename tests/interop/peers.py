"""Another client of BullMQ's queues in a process of its own, spoken to by JSON lines.

One process serves all tests of a session, under any prefix; what a test opened there is
closed with it. A process to be killed is started for its test alone.
"""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.interop.cells import NPM_5, NPM_6, PYPI

ROOT = Path(__file__).parents[2]
_FOLDER = Path(__file__).parent
PATIENCE_S = 60
_PACKAGES = {NPM_5: "bullmq5", NPM_6: "bullmq"}
Said = dict[str, Any]


class PeerError(Exception):
    """What the peer threw."""


class PeerProcess:
    """Calls are answered in any order; what happens by itself goes to the listener of its prefix."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe)
        self._numbers = itertools.count(1)
        self._calls: dict[int, Future[Any]] = {}
        self._listeners: dict[str, Callable[[Said], None]] = {}
        self._ready: Future[None] = Future()
        # A thread, since the event loops of the tests come and go.
        self._reader = threading.Thread(target=self._read, name="peer", daemon=True)
        self._reader.start()
        self._ready.result(PATIENCE_S)

    def call(self, verb: str, prefix: str, asked: Said) -> "Future[Any]":
        assert self._process.stdin is not None
        number = next(self._numbers)
        answer = self._calls[number] = Future()
        message = {"call": number, "verb": verb, "prefix": prefix, **asked}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return answer

    def hear(self, prefix: str, listener: Callable[[Said], None]) -> None:
        self._listeners[prefix] = listener

    def forget(self, prefix: str) -> None:
        self._listeners.pop(prefix, None)

    def kill(self) -> None:
        """As `kill -9` does: nothing is handed back, no connection said goodbye to."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._take(json.loads(line))
        for answer in [self._ready, *self._calls.values()]:
            if not answer.done():
                answer.set_exception(PeerError("the peer's process has ended"))

    def _take(self, said: Said) -> None:
        if "call" not in said:
            if said.get("event") == "ready":
                self._ready.set_result(None)
            elif (listener := self._listeners.get(said["prefix"])) is not None:
                listener(said)
        elif (answer := self._calls.pop(said["call"])).set_running_or_notify_cancel():
            if "error" in said:
                answer.set_exception(PeerError(said["error"]))
            else:
                answer.set_result(said["answer"])


class Peer:
    """A client under one prefix, for one test."""

    def __init__(self, name: str, process: PeerProcess, prefix: str) -> None:
        self.name = name
        self.prefix = prefix
        self._process = process
        self.heard: list[Said] = []
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        process.hear(prefix, self._take)

    def _take(self, said: Said) -> None:
        """Called in the thread that reads what the process says."""
        self._loop.call_soon_threadsafe(self._note, said)

    def _note(self, said: Said) -> None:
        self.heard.append(said)
        self._news.set()

    async def call(self, verb: str, queue: str = "mail", **asked: Any) -> Any:
        answer = self._process.call(verb, self.prefix, {"queue": queue, **asked})
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.wrap_future(answer)

    async def hears(self, event: str, *, source: str = "worker", **fields: Any) -> Said:
        """The first of such events, once it has come; an error that the peer met comes first."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self._news.clear()
                for said in self.heard:
                    assert said["event"] != "error", said
                    if said["event"] == event and said["source"] == source and fields.items() <= said.items():
                        return said
                await self._news.wait()

    async def hears_of(self, job_id: str, *events: str) -> list[str]:
        """All that its listener told of a job, in order, once it has told the last of these."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self._news.clear()
                told = [said["event"] for said in self.heard if said.get("args", {}).get("jobId") == job_id]
                if events[-1] in told and len(told) >= len(events):
                    return told
                await self._news.wait()

    def kill(self) -> None:
        self._process.kill()

    async def close(self) -> None:
        self._process.forget(self.prefix)
        await self.call("close")


@contextlib.contextmanager
def running_peer(name: str, redis_port: int) -> Iterator[PeerProcess]:
    """The client on that server. Missing: a failure in CI, a skip at home."""
    process = PeerProcess(_command(name, redis_port))
    try:
        yield process
    finally:
        process.stop()


def _command(name: str, redis_port: int) -> list[str]:
    if name == PYPI:
        if find_spec("bullmq") is None:
            _missing("BullMQ for Python is not installed: run `make setup`")
        return [sys.executable, "-m", "tests.interop.pypi", str(redis_port)]
    package = _PACKAGES[name]
    node = shutil.which("node")
    if node is None or not (_FOLDER / "node_modules" / package).exists():
        _missing("Node or its packages are not installed: run `npm ci` in tests/interop")
    return [str(node), str(_FOLDER / "bullmq.mjs"), package, str(redis_port)]


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)
