"""A real Redis server of our own: on a free port, in a temporary folder, gone with the tests."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

_START_S = 20.0
_STOP_S = 10.0


class RedisServer:
    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"

    def wait_until_ready(self) -> None:
        """Ask until it answers, or raise."""
        deadline = time.monotonic() + _START_S
        with contextlib.closing(redis.Redis(port=self.port, socket_timeout=1)) as client:
            while not _answers(client):
                if self._process.poll() is not None:
                    raise EndedAtOnce(f"redis-server ended with {self._process.returncode}")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"redis-server did not answer within {_START_S} s")
                time.sleep(0.01)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_S)


class EndedAtOnce(Exception):
    """The server did not start; its port may have been taken."""


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except (redis.ConnectionError, redis.TimeoutError):
        return False


@contextlib.contextmanager
def running_redis(*options: str) -> Iterator[RedisServer]:
    """A server that keeps nothing on disk. Missing: a failure in CI, a skip at home."""
    program = shutil.which("redis-server")
    if program is None:
        missing = "redis-server is not installed: run `make servers`"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with tempfile.TemporaryDirectory(prefix="bullpen-redis-") as folder:
        server = _start(program, Path(folder), options)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for the session; a `conftest.py` imports this to have it."""
    with running_redis() as server:
        yield server


def _start(program: str, folder: Path, options: tuple[str, ...]) -> RedisServer:
    # Another process may take the port between our look and the server's: then look again.
    for attempts_left in (4, 3, 2, 1, 0):
        port = _free_port()
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
        command += ["--save", "", "--appendonly", "no", *options]
        with (folder / "redis.log").open("wb") as log:
            server = RedisServer(subprocess.Popen(command, stdout=log, stderr=log), port)
        try:
            server.wait_until_ready()
        except BaseException as error:
            server.stop()
            if not isinstance(error, EndedAtOnce) or not attempts_left:
                raise
        else:
            return server
    raise AssertionError("the last attempt returns or raises")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
