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
_STOP_S = 60.0
# What is at stake here is only what a killed process of ours leaves behind; no test cuts the power.
_OPTIONS = (
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",
    "dynamic_shared_memory_type=mmap",  # in its folder: in /dev/shm it would outlive the server
    "max_connections=60",
    f"listen_addresses={HOST}",
)
_KEPT = 20
"""So many databases are kept, more than one test makes: each takes 8 MB."""


class PostgresServer:
    def __init__(self, program: str, folder: Path) -> None:
        self._bin = Path(program).resolve().parent
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._account = _account()
        self._made: list[str] = []
        self._templates: set[str] = set()
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
        process.send_signal(
            signal.SIGQUIT
        )  # at once: nobody will read the hundreds of databases that it would write down
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S)

    def restart(self) -> None:
        """Stop it as its operators do, and start it where it was."""
        self.halt()
        self.resume()

    def halt(self) -> None:
        """Stop it as its operators do; until `resume` all connections are refused."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_STOP_S)

    def resume(self) -> None:
        self._start_once()

    def new_database(self, like: str = "template0") -> str:
        """The address of an empty database, or of a copy of another that nobody is connected to."""
        name = f"test_{uuid.uuid4().hex}"
        self._templates.add(like)
        # To copy the files is several times cheaper than to log each page of them, as is usual since version 15.
        copying = " STRATEGY file_copy" if self._version >= 15 else ""
        words = [f"CREATE DATABASE {name} TEMPLATE {like}{copying}"]
        words += [f"DROP DATABASE {old} WITH (FORCE)" for old in self._made[:-_KEPT] if old not in self._templates]
        command: list[str | Path] = [
            self._bin / "psql",
            "-h",
            HOST,
            "-p",
            str(self.port),
            "-U",
            _USER,
            "postgres",
            "-X",
        ]
        for each in words:
            command += ["-c", each]
        subprocess.run(command, check=True, capture_output=True)
        self._made = [*self._made[-_KEPT:], name]
        return f"postgresql://{_USER}@{HOST}:{self.port}/{name}"

    @property
    def _version(self) -> int:
        return int((self._folder / "data" / "PG_VERSION").read_text())


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
