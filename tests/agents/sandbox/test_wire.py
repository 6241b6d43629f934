"""A warden that was taken over: whatever it sends, the worker ends the sandbox and keeps its head."""

import json
import struct

import pytest

from bullpen.agents.sandbox import Level, Limits, SandboxSpec
from bullpen.agents.sandbox.guarded import GuardedSandbox
from bullpen.errors import SandboxBroken

_FINE = {"id": 1, "done": True, "size": 0}


class Forged:
    """A channel on which whatever the test says comes back."""

    def __init__(self, said: bytes) -> None:
        self._said = said
        self.killed = False

    async def write(self, data: bytes) -> None:
        pass

    async def read_exactly(self, count: int) -> bytes:
        if len(self._said) < count:
            raise EOFError
        data, self._said = self._said[:count], self._said[count:]
        return data

    async def kill(self) -> None:
        self.killed = True

    async def close(self) -> None:
        pass

    def oom_killed(self) -> bool:
        return False


def _frame(head: object, body: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return struct.pack(">I", len(text)) + text + body


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff\xff\xff\xff",
        struct.pack(">I", 3) + b"{x}",
        _frame(["no", "object"]),
        _frame({**_FINE, "size": -1}),
        _frame({**_FINE, "size": 1 << 40}),
        _frame({**_FINE, "size": "many"}),
        _frame({**_FINE, "id": 7}),
        _frame(_FINE),  # no outcome
        _frame({**_FINE, "ended": "won", "code": 0}),
        _frame({"id": 1, "part": "stdin", "size": 1}, b"x"),
        _frame({"id": 1, "part": "stdout", "size": 100_000}, b"x" * 100_000),  # more than is kept
    ],
    ids=range(12),
)
async def test_what_is_no_answer_to_a_command(said: bytes) -> None:
    channel = Forged(said)
    sandbox = GuardedSandbox("x", Level.NAMESPACE, SandboxSpec(limits=Limits(output_bytes=1000)), channel)
    with pytest.raises(SandboxBroken):
        await sandbox.run(["true"])
    assert channel.killed


@pytest.mark.parametrize(
    "said",
    [
        _frame({**_FINE, "entries": [{"name": "x"}]}),
        _frame({**_FINE, "entries": [{"name": "x", "kind": "door", "bytes": 1}]}),
        _frame({**_FINE, "entries": 5}),
    ],
    ids=range(3),
)
async def test_what_is_no_list(said: bytes) -> None:
    with pytest.raises(SandboxBroken):
        await GuardedSandbox("x", Level.NAMESPACE, SandboxSpec(), Forged(said)).list()


async def test_more_than_was_asked_for() -> None:
    channel = Forged(_frame({"id": 1, "part": "data", "size": 100}, b"x" * 100) + _frame(_FINE))
    with pytest.raises(SandboxBroken, match="more than was asked for"):
        await GuardedSandbox("x", Level.NAMESPACE, SandboxSpec(), channel).read("file", limit=99)
    assert channel.killed
