"""A folder in memory: what a test keeps there survives killed processes, as on a disk, and costs little."""

import os

_FOLDER = "/dev/shm"
_ROOM_BYTES = 4 << 30
"""With less, a suite whose six processes each keep a server with 20 databases might fill it."""


def memory_folder() -> str | None:
    """None where there is too little room, as in many containers, or where no program may be kept."""
    try:
        found = os.statvfs(_FOLDER)
    except OSError:
        return None
    has_room = found.f_bavail * found.f_frsize >= _ROOM_BYTES
    return _FOLDER if has_room and os.access(_FOLDER, os.W_OK) and not found.f_flag & os.ST_NOEXEC else None
