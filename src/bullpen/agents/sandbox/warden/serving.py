"""Answers one request after the other; only `kill` may come while a command runs."""

import ctypes
import errno
import os
import signal
import sys

from bullpen.agents.sandbox.warden.command import run
from bullpen.agents.sandbox.warden.files import VERBS, WORKSPACE
from bullpen.agents.sandbox.warden.processes import kill_everyone
from bullpen.agents.sandbox.warden.wire import Head, Refused, Wire

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_KINDS = {errno.ENOSPC: "disk-full", errno.ENOENT: "missing"}


def main() -> None:
    os.makedirs(WORKSPACE, exist_ok=True)
    bell = _settle_in()
    wire = Wire()
    wire.send({"id": 0, "done": True, "python": sys.version.split()[0]})
    while True:
        head, body = wire.receive()
        _serve(wire, head, body, bell)


def _serve(wire: Wire, head: Head, body: bytes, bell: int) -> None:
    try:
        if head["do"] == "run":
            run(wire, head, body, bell)
        elif head["do"] in VERBS:  # a late `kill` finds nothing to end
            wire.send({"id": head["id"], "done": True, **VERBS[head["do"]](wire, head, body)})
    except Refused as error:
        wire.send({"id": head["id"], "done": True, "refused": error.kind, "message": str(error)})
    except OSError as error:
        kind = _KINDS.get(error.errno or 0, "refused")
        message = f"{head.get('path', 'the workspace')}: {error.strerror}"
        wire.send({"id": head["id"], "done": True, "refused": kind, "message": message})
    except Exception as error:  # noqa: BLE001 - one bad request must not cost the workspace
        kill_everyone()
        message = f"{type(error).__name__}: {error}"
        wire.send({"id": head["id"], "done": True, "refused": "failed", "message": message})


def _settle_in() -> int:
    """Be out of reach of what runs beside us; the descriptor that rings when a process ended."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 is deaf to what it does not handle
    signal.signal(signal.SIGCHLD, lambda *_: None)
    bell, ringer = os.pipe()
    for fd in (bell, ringer):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody reads our memory or descriptors
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return bell
