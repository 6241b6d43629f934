"""Pauses between tries, for whoever waits until something is back."""

import random
from collections.abc import Callable


class Pauses:
    """They grow up to a most, and vary, so that a fleet that lost its store does not come back as one."""

    def __init__(self, first_s: float, most_s: float, vary: Callable[[], float] = random.random) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._vary = vary
        self._next_s = first_s

    def next_s(self) -> float:
        """How long to wait now: between half of the present pause and all of it."""
        pause_s, self._next_s = self._next_s, min(self._next_s * 2, self._most_s)
        return pause_s * (1 + self._vary()) / 2

    def begin_anew(self) -> None:
        """It went well: the next pause is the first again."""
        self._next_s = self._first_s
