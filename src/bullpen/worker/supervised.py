"""What a supervisor and its processes agree on."""

import os
import secrets
import socket
from enum import StrEnum

SUPERVISED = "BULLPEN_SUPERVISED"
"""Set in processes that a supervisor replaces when they end."""
NAME = "BULLPEN_WORKER_NAME"
"""The name that a supervisor knows this process's worker by."""
EXIT_REPLACE = 75
"""The exit code of a process that wants to be replaced."""


def is_supervised() -> bool:
    return bool(os.environ.get(SUPERVISED))


def own_name() -> str:
    """The name that a supervisor gave this process's worker; else one that no other has."""
    return os.environ.get(NAME) or f"{process_name()}-{secrets.token_hex(3)}"


def process_name() -> str:
    """The name that a supervisor gave this process's worker; else how those of all its workers begin."""
    return os.environ.get(NAME) or f"{socket.gethostname()}-{os.getpid()}"


class Ended(StrEnum):
    """Why `run` returned."""

    STOPPED = "stopped"
    RECYCLED = "recycled"
