"""A clock that moves only when told to."""


class ManualClock:
    """Both clocks of `bullpen.clock.Clock`, under the test's control."""

    def __init__(self, now_ms: int = 1_750_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def mono_ms(self) -> int:
        return self._now_ms

    def advance(self, ms: int) -> None:
        if ms < 0:
            raise ValueError(f"a clock does not go back: {ms}")
        self._now_ms += ms
