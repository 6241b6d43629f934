"""A PostgreSQL server of our own for one trial, as it comes: fsync on, default sizes; gone with the trial."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.leash import leashed
from benchmarks.redis.server import HOST, free_port
from benchmarks.trials import NotMeasured, WentWrong

_DEBIAN = Path("/usr/lib/postgresql")
_USER = "postgres"
_START_S = 30.0


def version() -> str | None:
    """Of the server that is installed, or None."""
    server = _program("postgres")
    if server is None:
        return None
    return subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]


def _program(name: str) -> Path | None:
    """Debian keeps the server's programs out of the PATH."""
    found = shutil.which(name)
    return Path(found) if found else max(_DEBIAN.glob(f"*/bin/{name}"), default=None)


@contextlib.asynccontextmanager
async def running_postgres(folder: Path) -> AsyncIterator[str]:
    """The URL of an empty database."""
    initdb, server = _program("initdb"), _program("postgres")
    if initdb is None or server is None:
        raise NotMeasured("PostgreSQL is not installed")
    data, log = folder / "postgres", folder / "postgres.log"
    data.mkdir()
    user = _owner(folder, data)
    make: list[str | Path] = [initdb, "--no-sync", "--auth", "trust", "--username", _USER, "--pgdata", data]
    async with leashed(*make, log=log, user=user) as making:
        if await making.wait():
            raise WentWrong(f"initdb failed: {_last_line(log)}")
    port = free_port()
    serve: list[str | Path] = [server, "-D", data, "-h", HOST, "-p", str(port), "-k", ""]
    # SIGINT is its fast shutdown: it waits for nobody.
    async with leashed(*serve, log=log, user=user, stop=signal.SIGINT) as running:
        await _until_ready(running, data / "postmaster.pid", log)
        yield f"postgresql://{_USER}@{HOST}:{port}/postgres"


def _owner(folder: Path, data: Path) -> str | None:
    """PostgreSQL refuses to run as root: then its own user has the data, and may pass through the folder."""
    if os.geteuid() != 0:
        return None
    folder.chmod(0o711)
    shutil.chown(data, _USER, _USER)
    return _USER


async def _until_ready(running: Process, status: Path, log: Path) -> None:
    """It listens before it serves; its status file says which."""
    try:
        async with asyncio.timeout(_START_S):
            while not (status.exists() and "ready" in status.read_text()):
                if running.returncode is not None:
                    raise WentWrong(f"postgres ended with {running.returncode}: {_last_line(log)}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise WentWrong("postgres did not answer in time") from None


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "no word of why"
