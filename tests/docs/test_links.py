"""Links lead somewhere, and tests that pages name exist."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_pages, prose

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_TEST = re.compile(r"`(?P<file>[\w/.-]+\.py)::(?P<test>\w+)`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    return {re.sub(r"[^\w\- ]", "", found.lower()).replace(" ", "-") for found in _HEADING.findall(prose(page))}


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_exist(page: Path) -> None:
    """A link within the project names a file that is there, and a heading that it has."""
    broken = []
    for target in _LINK.findall(prose(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, heading = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (heading and heading not in _anchors(file)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_named_tests_exist(page: Path) -> None:
    """A page that calls a test its proof names a test that is there."""
    missing = []
    for match in _TEST.finditer(page.read_text()):
        file = ROOT / match["file"]
        if not file.is_file() or f"def {match['test']}(" not in file.read_text():
            missing.append(match[0])
    assert not missing
