"""The page about events of runs has each kind, and no other; that the fields are right, tests of the streams check."""

from bullpen.records.runs.words import ProgressKind
from tests.docs.pages import REFERENCE, rows

PAGE = REFERENCE / "run-events.md"


def test_every_kind_has_its_line() -> None:
    assert [row[0] for row in rows(PAGE.read_text())] == list(ProgressKind)


def fields_of(kind: str) -> set[str]:
    """What the data of such an event may have."""
    cells = {row[0]: row[2] for row in rows(PAGE.read_text())}
    return {field.strip(" `") for field in cells[kind].split(",")}
