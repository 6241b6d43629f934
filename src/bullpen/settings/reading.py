"""Settings that are numbers and switches; one that is set to nothing is not set."""

from bullpen.errors import BadOption
from bullpen.settings.told import told

_ON, _OFF = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def whole_from(setting: str, usual: int, low: int, high: int) -> int:
    """The whole number that is told by this name; BadOption names it."""
    said = told(setting)
    if not said:
        return usual
    text = said.strip()
    is_whole = text.isascii() and text.isdecimal() and len(text) <= len(str(high))
    if not is_whole or not low <= int(text) <= high:
        raise BadOption(f"{setting}: a whole number from {low} to {high}, not {said!r}")
    return int(text)


def switch_from(setting: str, usual: bool) -> bool:
    """Whether it is on; BadOption names it."""
    said = told(setting)
    if not said:
        return usual
    text = said.strip().lower()
    if text not in _ON | _OFF:
        raise BadOption(f"{setting}: 1 or 0, not {said!r}")
    return text in _ON
