"""BullMQ in a Node process, spoken to by JSON lines."""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).parent
_PATIENCE_S = 30.0


class Node:
    """Calls are answered in any order; what happens by itself is waited for with `event`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def call(self, verb: str, **asked: Any) -> Any:
        assert self._process.stdin is not None
        number = next(self._numbers)
        answer = self._calls[number] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"call": number, "verb": verb, **asked}).encode() + b"\n")
        await self._process.stdin.drain()
        return await asyncio.wait_for(answer, _PATIENCE_S)

    async def event(self, name: str) -> dict[str, Any]:
        """The next event, which must be of this name."""
        event = await asyncio.wait_for(self._events.get(), _PATIENCE_S)
        assert event["event"] == name, event
        return event

    async def listen(self) -> None:
        """Hand out what the process says until it ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            if "call" not in message:
                self._events.put_nowait(message)
            elif "error" in message:
                self._calls.pop(message["call"]).set_exception(NodeError(message["error"]))
            else:
                self._calls.pop(message["call"]).set_result(message["answer"])

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _PATIENCE_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


class NodeError(Exception):
    """What BullMQ threw."""


@contextlib.asynccontextmanager
async def running_node(port: int, prefix: str) -> AsyncIterator[Node]:
    """Node with BullMQ on that server. Missing: a failure in CI, a skip at home."""
    program = shutil.which("node")
    if program is None or not (_FOLDER / "node_modules" / "bullmq").exists():
        missing = "Node or its packages are not installed: run `npm ci` in tests/interop"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    process = await asyncio.create_subprocess_exec(
        program,
        str(_FOLDER / "bullmq.mjs"),
        str(port),
        prefix,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    node = Node(process)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(node.listen(), name="node's answers")
        try:
            await node.event("ready")
            yield node
        finally:
            await node.stop()
