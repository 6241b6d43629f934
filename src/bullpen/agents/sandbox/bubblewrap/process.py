"""A bubblewrap that runs: the wire to its warden, and its end."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess

from bullpen.agents.sandbox.cgroups import Group

_WAIT_S = 1.0


class BubblewrapChannel:
    """Two processes: bubblewrap, and process 1 in its namespaces. The end of either is the end of all."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", pid: int, wire: socket.socket, group: Group | None, said: int
    ) -> None:
        self.pid = pid
        self.group = group
        self._process = process
        self._said = said
        self._handle = os.pidfd_open(pid)
        self._socket = wire
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._oom_kills = 0
        self._ended = False

    async def open(self) -> None:
        self._streams = await asyncio.open_connection(sock=self._socket, limit=1 << 20)

    async def write(self, data: bytes) -> None:
        assert self._streams
        self._streams[1].write(data)
        await self._streams[1].drain()

    async def read_exactly(self, count: int) -> bytes:
        assert self._streams
        return await self._streams[0].readexactly(count)

    def oom_killed(self) -> bool:
        kills = self.group.oom_kills() if self.group else 0
        before, self._oom_kills = self._oom_kills, kills
        return kills > before

    async def kill(self) -> None:
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        await asyncio.to_thread(self._wait)

    def _wait(self) -> None:
        """Until all is gone: the kernel lets process 1 end last, and bubblewrap waits for it."""
        try:
            self._process.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def complaint(self) -> str:
        """What bubblewrap said before it ended."""
        return read_complaint(self._said)

    async def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            os.close(self._said)
            self._handle = -1
        if self._streams:
            self._streams[1].close()
            with contextlib.suppress(OSError):
                await self._streams[1].wait_closed()
        else:
            self._socket.close()
        if self.group:
            await self.group.remove()


def read_complaint(said: int) -> str:
    return os.pread(said, 4096, 0).decode(errors="replace").strip()
