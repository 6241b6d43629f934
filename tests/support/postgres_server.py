"""A real PostgreSQL server of our own: on a free port, in a temporary folder, gone with the tests."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.redis_server import HOST, EndedAtOnce, free_port, wait_until

_USER = "bullpen"
_STOP_S = 20.0
# What is at stake here is only what a killed process of ours leaves behind; no test cuts the power.
_OPTIONS = ("fsync=off", "full_page_writes=off", "max_connections=60", f"listen_addresses={HOST}")


class PostgresServer:
    def __init__(self, program: str, folder: Path) -> None:
        self._bin = Path(program).resolve().parent
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._account = _account()
        self.port = 0

    def make(self) -> None:
        """Make the files of an empty server."""
        if self._account is not None:
            shutil.chown(self._folder, self._account)
        command: list[str | Path] = [
            self._bin / "initdb",
            "-D",
            self._folder / "data",
            "-U",
            _USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
        ]
        command += ["--locale=C", "--no-sync", "--no-instructions"]
        subprocess.run(command, check=True, capture_output=True, user=self._account, cwd=self._folder)

    def start(self) -> None:
        """Start on a free port and wait until it answers."""
        # Another process may take the port between our look and the server's: then look again.
        for attempts_left in (4, 3, 2, 1, 0):
            self.port = free_port()
            try:
                self._start_once()
            except EndedAtOnce:
                if not attempts_left:
                    raise
            else:
                return

    def _start_once(self) -> None:
        command: list[str | Path] = [
            self._bin / "postgres",
            "-D",
            self._folder / "data",
            "-p",
            str(self.port),
            "-k",
            self._folder,
        ]
        for option in _OPTIONS:
            command += ["-c", option]
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, user=self._account, cwd=self._folder)
        self._process = process

        def answers() -> bool:
            if process.poll() is not None:
                raise EndedAtOnce(f"postgres ended with {process.returncode}: see {self._folder}")
            ready: list[str | Path] = [self._bin / "pg_isready", "-q", "-h", HOST, "-p", str(self.port)]
            return subprocess.run(ready, check=False).returncode == 0

        wait_until(answers, "postgres answers")

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)  # its quick and orderly end
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S)

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"test_{uuid.uuid4().hex}"
        command: list[str | Path] = [
            self._bin / "createdb",
            "-h",
            HOST,
            "-p",
            str(self.port),
            "-U",
            _USER,
            "-T",
            "template0",
            name,
        ]
        subprocess.run(command, check=True, capture_output=True)
        return f"postgresql://{_USER}@{HOST}:{self.port}/{name}"


def find_postgres() -> str | None:
    """Where `make servers` finds or puts it."""
    found = [str(path) for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    return shutil.which("postgres") or max(found, default=None)


def _account() -> str | None:
    """Under whose name it runs: PostgreSQL refuses to be root's."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the session; a `conftest.py` imports this to have it."""
    program = find_postgres()
    if program is None:
        missing = "postgres is not installed: run `make servers`"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with tempfile.TemporaryDirectory(prefix="bullpen-postgres-") as folder:
        server = PostgresServer(program, Path(folder))
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
