"""What is worth telling about a store: for its log, and for `bullpen doctor`."""

from typing import Literal, NamedTuple

Level = Literal["ok", "warn", "bad"]


class Finding(NamedTuple):
    level: Level
    check: str
    message: str
    fix: str = ""
    """What to do; there for all that is not ok."""
