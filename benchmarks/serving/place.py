"""A server of our own for one trial."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.leash import leashed
from benchmarks.redis.server import free_port
from benchmarks.trials import WentWrong

HOST = "127.0.0.1"
_START_S = 60.0


@dataclass(frozen=True)
class Served:
    port: int
    pid: int

    def memory_mb(self) -> float:
        """What it holds in memory now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise WentWrong("the server is gone")

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


@contextlib.asynccontextmanager
async def serving(folder: Path, store: str, records: str | None = None) -> AsyncIterator[Served]:
    """`bullpen server` on these, ready."""
    port = free_port()
    command = [sys.executable, "-m", "bullpen.cli", "--store", store, "server", "--port", str(port)]
    command += ["--records", records or f"sqlite:{folder / 'records.db'}"]
    log = folder / "server.log"
    async with leashed(*command, log=log) as holder:
        try:
            async with asyncio.timeout(_START_S):
                while (await get_status(port, "/health/ready")) != 200:
                    if holder.returncode is not None:
                        raise WentWrong(f"the server ended: {log.read_text()[-500:]}")
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise WentWrong("the server was not ready in time") from None
        yield Served(port, _child_of(holder.pid))


def _child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


async def get_status(port: int, path: str) -> int | None:
    """The status of an answer; None if nobody answers."""
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return None
    try:
        writer.write(request(path))
        return int((await reader.readline()).split()[1])
    except (OSError, IndexError):
        return None
    finally:
        writer.close()


async def get_json(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> object:
    """One answer on a connection that stays open."""
    writer.write(request(path, keep=True))
    status = int((await reader.readline()).split()[1])
    length = 0
    while (line := await reader.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = await reader.readexactly(length)
    if status != 200:
        raise WentWrong(f"{path}: {status} {body[:300]!r}")
    return json.loads(body)


def request(path: str, *, keep: bool = False) -> bytes:
    closing = "" if keep else "Connection: close\r\n"
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nAccept: */*\r\n{closing}\r\n".encode()


async def open_stream(port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A stream whose head has been read."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(request(path, keep=True))
    status = int((await reader.readline()).split()[1])
    while await reader.readline() != b"\r\n":
        pass
    if status != 200:
        raise WentWrong(f"{path}: {status}")
    return reader, writer
