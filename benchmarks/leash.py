"""A server that lives as long as its leash is held, whatever becomes of the holder.

    python -m benchmarks.leash --stop SIGTERM [--user NAME] PROGRAM ARGUMENT…

The leash is the program's standard input: once it closes, the server is told to stop, and is ended if it does not.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_STOP_S = 15.0


@contextlib.asynccontextmanager
async def leashed(
    *command: str | Path, log: Path, stop: signal.Signals = signal.SIGTERM, user: str | None = None
) -> AsyncIterator[Process]:
    """The server, for the time of a block. In a session of its own: a Ctrl-C is for us, and we end it in good order."""
    as_user = ["--user", user] if user else []
    hold = [sys.executable, "-m", "benchmarks.leash", "--stop", stop.name, *as_user, *map(str, command)]
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *hold, stdin=PIPE, stdout=output, stderr=output, cwd=_ROOT, start_new_session=True
        )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        await process.wait()


def _hold(command: list[str], stop: signal.Signals, user: str | None) -> None:
    rights = {"user": user, "group": user} if user else {}
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd="/", **rights)  # type: ignore[call-overload]

    def end_with_server() -> None:
        os._exit(server.wait())

    threading.Thread(target=end_with_server, daemon=True).start()
    while os.read(0, 1024):
        pass
    server.send_signal(stop)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(_STOP_S)
    server.kill()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stop", type=signal.Signals.__getitem__, default=signal.SIGTERM)
    parser.add_argument("--user")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    _hold(args.command, args.stop, args.user)
