"""Running `bullpen` for real: as a program reads it, and as a person at a terminal of 80 columns sees it."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli import forking

LIMIT_S = 60
COLUMNS = 80
_ROWS = 40
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ANY_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Answer(NamedTuple):
    code: int
    out: str
    err: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def items(self) -> list[Any]:
        """The lines of JSON that a stream gave."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def has_colour(self) -> bool:
        return _COLOUR.search(self.out) is not None

    @property
    def lines(self) -> list[str]:
        """Without colours."""
        return _ANY_ESCAPE.sub("", self.out).replace("\r", "").splitlines()


def words(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bullpen.cli", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("BULLPEN_") and name not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    return {**kept, "TERM": "xterm-256color", **more}


class Folder:
    """A place to give commands in, with a store of its own."""

    def __init__(self, path: Path, address: str) -> None:
        self.path = path
        self.address = address

    def bullpen(self, *arguments: object, given: str = "", **variables: str) -> Answer:
        """Run to the end, with pipes."""
        variables = environment(BULLPEN_STORE=self.address, **variables)
        done = forking.run([str(each) for each in arguments], self.path, variables, given)
        assert "Traceback" not in done.stderr, done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    @contextlib.contextmanager
    def started(self, *arguments: object) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on; killed at the end of the block if it still does."""
        process = subprocess.Popen(
            words(*arguments),
            cwd=self.path,
            env=environment(BULLPEN_STORE=self.address, PYTHONUNBUFFERED="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    @contextlib.contextmanager
    def at_terminal(self, *arguments: object, **variables: str) -> Iterator["Terminal"]:
        terminal = Terminal(words(*arguments), self.path, environment(BULLPEN_STORE=self.address, **variables))
        try:
            yield terminal
        finally:
            terminal.close()

    def seen(self, *arguments: object, **variables: str) -> Answer:
        """Run to the end, at the terminal."""
        with self.at_terminal(*arguments, **variables) as terminal:
            return terminal.end()


class Terminal:
    """A command at a terminal of 80 columns."""

    def __init__(self, command: list[str], folder: Path, variables: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self._seen = ""

    def until(self, text: str) -> str:
        """Read until this was shown."""
        while text not in self._seen:
            more = self._read()
            assert more, f"{text!r} never came: {self._seen!r}"
        return self._seen

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> Answer:
        while self._read():
            pass
        return Answer(self.process.wait(LIMIT_S), self._seen)

    def _read(self) -> str:
        try:
            more = os.read(self._master, 65_536).decode(errors="replace")
        except OSError:  # the other side is closed: Linux says so by an error
            more = ""
        self._seen += more
        return more

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
