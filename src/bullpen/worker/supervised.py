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
GIVE_WAY_S = 2.0
"""How long handlers may take to stop, after their worker's grace period."""
LAST_TRIPS_S = 10.0
"""How long the last verdicts may then take to reach a store that is away."""
CLOSE_WITHIN_S = 5.0
"""What an application may take to give back what its jobs had, such as sandboxes; others find the rest."""
KILL_AFTER_S = GIVE_WAY_S + LAST_TRIPS_S + CLOSE_WITHIN_S + 3.0
"""A process that outlasts its grace period by more than all of that, and its own end, is killed."""


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
