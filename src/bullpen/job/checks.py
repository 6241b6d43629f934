"""What an option may be: each check raises BadOption, which names the option and what was given."""

from datetime import datetime
from types import UnionType

from bullpen.errors import BadOption
from bullpen.job.spec import OnFailure


def check_whole(option: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadOption(f"{option}: a whole number from {low} to {high}, not {value!r}")


def check_at_least(option: str, value: object, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise BadOption(f"{option}: a whole number of {low} or more, not {value!r}")


def check_policy(value: object) -> OnFailure | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in tuple(OnFailure):
        raise BadOption(f"on_failure: None or one of {', '.join(OnFailure)}, not {value!r}")
    return OnFailure(value)


def check_kind(option: str, value: object, kind: type | UnionType, expected: str) -> None:
    if not isinstance(value, kind):
        raise BadOption(f"{option}: {expected}, not {value!r}")


def check_jitter(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadOption(f"jitter: a share from 0 to 1, not {value!r}")
    return float(value)


def instant_ms(option: str, instant: datetime) -> int:
    if instant.tzinfo is None:
        raise BadOption(f"{option}: {instant.isoformat()} has no time zone; add one, e.g. tzinfo=UTC")
    return round(instant.timestamp() * 1000)
