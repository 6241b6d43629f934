"""A Redis server of our own for one trial: on a free port, in the trial's folder, gone with it."""

import asyncio
import contextlib
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import redis

from benchmarks.leash import leashed
from benchmarks.trials import NotMeasured, WentWrong

HOST = "127.0.0.1"
_START_S = 20.0


def version() -> str | None:
    """Of the server that is installed, or None."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return told.partition("v=")[2].partition(" ")[0] or "of an unknown version"


@contextlib.asynccontextmanager
async def running_redis(folder: Path, *, aof: bool = False) -> AsyncIterator[int]:
    """The port of a server that keeps nothing on disk, or a log that is synced every second."""
    program = shutil.which("redis-server")
    if program is None:
        raise NotMeasured("redis-server is not installed")
    port = free_port()
    command = [program, "--port", str(port), "--bind", HOST, "--dir", str(folder), "--save", ""]
    command += ["--appendonly", "yes" if aof else "no", "--appendfsync", "everysec"]
    async with leashed(*command, log=folder / "redis.log") as running:
        await _until_ready(running, port)
        yield port


def process_of(port: int) -> int:
    with contextlib.closing(redis.Redis(HOST, port)) as client:
        return int(client.info("server")["process_id"])


async def _until_ready(running: asyncio.subprocess.Process, port: int) -> None:
    try:
        async with asyncio.timeout(_START_S):
            while not _answers(port):
                if running.returncode is not None:
                    raise WentWrong(f"redis-server ended with {running.returncode}")
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise WentWrong("redis-server did not answer in time") from None


def _answers(port: int) -> bool:
    with contextlib.closing(redis.Redis(HOST, port, socket_timeout=1)) as client:
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
