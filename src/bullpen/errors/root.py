"""The root of the error tree."""

from typing import ClassVar


class BullpenError(Exception):
    """The root: catch this to catch all that Bullpen raises."""

    code: ClassVar[str] = "bullpen-error"
