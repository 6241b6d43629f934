"""The figures of a run take the place of those before, and nothing else on their page changes."""

from pathlib import Path

import pytest

from benchmarks.report import as_markdown, write_between_markers
from benchmarks.series import Figures, Series

_BEFORE = 'A peer that is absent\nis reported as not measured. Its rows say "not measured".\n'
_AFTER = "| limit | not measured |\n\nThe end.\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    page = tmp_path / "page.md"
    page.write_text(f"{_BEFORE}<!-- results -->\nold\n<!-- /results -->{_AFTER}")
    return page


def test_only_what_stands_between_the_markers_is_replaced(page: Path) -> None:
    write_between_markers(page, "new, not measured")
    assert page.read_text() == f"{_BEFORE}<!-- results -->\n\nnew, not measured\n<!-- /results -->{_AFTER}"


def test_a_page_without_a_place_for_figures_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_BEFORE)
    with pytest.raises(ValueError, match="no place for results"):
        write_between_markers(page, "new")
    assert page.read_text() == _BEFORE


def test_what_could_not_be_measured_says_why_in_the_rows_themselves() -> None:
    """So that nobody has to take it out of the page by hand."""
    figures, absent, not_met = Figures(), Series("a", "drain", ""), Series("b", "drain", "")
    figures.missing[absent] = "it is absent"
    text = as_markdown(figures, [absent, not_met], [], [])
    assert "| drain | a |  | not measured: it is absent |  | /s |" in text
    assert "| b |" not in text, "a run that was ended early has not come to it"
