"""Commands that are forked from a process which has read the code already: python -m tests.cli.forking <socket>.

Each command is a process of its own, as in life; only it does not read the code again, which is most of what a short
one takes. Whoever asks sends the command with the files for its input and output, and is told its exit code.
"""

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bullpen.cli.main import main

LIMIT_S = 60
_MOST_BYTES = 100_000
_ROOT = Path(__file__).parents[2]


def run(
    arguments: Sequence[str], folder: Path, variables: Mapping[str, str], given: str
) -> "subprocess.CompletedProcess[str]":
    """`bullpen …` to its end."""
    asked = json.dumps({"arguments": arguments, "folder": str(folder), "variables": dict(variables)})
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, tempfile.TemporaryFile("w+") as fed:
        fed.write(given)
        fed.seek(0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.connect(_forker())
            socket.send_fds(asking, [asked.encode()], [fed.fileno(), out.fileno(), err.fileno()])
            code = int(asking.recv(_MOST_BYTES))
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


@functools.cache
def _forker() -> str:
    """Where one listens, for all tests of this process."""
    folder = tempfile.TemporaryDirectory(prefix="bullpen-cli-")
    path = str(Path(folder.name) / "commands")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.forking", path], cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )

    def end() -> None:
        process.kill()
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return path


# ── the process that is forked from ──────────────────────────────────────────────────────


def _serve(path: str) -> int:
    """Comes back once in each child, which is then the command; the first process is killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for a command
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            asking, _ = listener.accept()
            with asking:
                if os.fork() == 0:
                    listener.close()
                    return _attend(asking)


def _attend(asking: socket.socket) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    words, files, _, _ = socket.recv_fds(asking, _MOST_BYTES, 3)
    command = os.fork()
    if command == 0:
        asking.close()
        return _become(json.loads(words), files)
    _, status = os.waitpid(command, 0)
    asking.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(asked: dict[str, Any], files: Sequence[int]) -> int:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["variables"])
    time.tzset()
    sys.path[0] = asked["folder"]
    sys.argv[1:] = asked["arguments"]
    signal.alarm(LIMIT_S)  # a command that hangs ends, and the test fails
    return main()


if __name__ == "__main__":
    sys.exit(_serve(sys.argv[1]))
