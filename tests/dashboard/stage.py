"""A server, and a worker where one is wanted, as processes of their own; and a hand in their store."""

import asyncio
import contextlib
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

from tests.dashboard.shop import Shop

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_LIMIT_S = 60


def find_browser() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class Stage:
    """What a browser looks at."""

    def __init__(self, folder: Path, application: str = "tests.dashboard.shop:pen") -> None:
        self.folder = folder
        self.store = str(folder / "queue.db")
        self.records = f"sqlite:{folder / 'records.db'}"
        self.shop = Shop(self.store)
        self.url = ""
        self.application = application
        """What its workers run."""
        self.environment: dict[str, str] = {}
        """More than usual, of all its processes."""
        self._server: Process | None = None
        self._worker: Process | None = None

    async def __aenter__(self) -> Self:
        await self.shop.pen.open()
        await self.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in (self._worker, self._server):
            await _end(process)
        await self.shop.pen.close()

    async def start_server(self, port: int = 0) -> None:
        self._server = await self._started("server", "--port", str(port), "--records", self.records)
        assert self._server.stdout is not None
        async with asyncio.timeout(_LIMIT_S):
            line = (await self._server.stdout.readline()).decode()
        assert "http://" in line, line
        self.url = line.split()[-1]

    async def stop_server(self) -> int:
        """The port that it had."""
        await _end(self._server)
        return int(self.url.rpartition(":")[2])

    async def start_worker(self) -> None:
        self._worker = await self._started("worker", self.application)

    async def hurry_worker(self) -> None:
        """It hands back what it does, and is gone."""
        worker = self._worker
        assert worker is not None
        async with asyncio.timeout(_LIMIT_S):
            while worker.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    worker.terminate()
                await asyncio.sleep(0.1)

    def gate(self, name: str) -> Path:
        """A job that waits here goes on when the file is there."""
        return self.folder / name

    async def command(self, *words: str) -> str:
        """`bullpen …` to its end; what it printed."""
        process = await self._started(*words)
        out, _ = await process.communicate()
        assert process.returncode == 0, out
        return out.decode()

    async def until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(_LIMIT_S):
            while not await is_so():
                await asyncio.sleep(0.05)

    async def _started(self, *words: str) -> Process:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BULLPEN_")}
        environment |= {"BULLPEN_STORE": self.store, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        environment |= {"BULLPEN_RECORDS": self.records} | self.environment
        errors = (self.folder / f"{words[0]}.log").open("ab")
        with errors:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-u",
                "-m",
                "bullpen.cli",
                *words,
                cwd=self.folder,
                env=environment,
                stdout=PIPE,
                stderr=errors,
            )


async def _end(process: Process | None) -> None:
    if process is None or process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_LIMIT_S):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
