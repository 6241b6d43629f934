"""Links lead somewhere, and tests that pages name exist."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_pages, prose, rows, section

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_TEST = re.compile(r"`(?P<file>[\w/.-]+\.py)::(?P<test>\w+)`")
_MODULE = re.compile(r"`(?P<path>[a-z_]\w*(?:/\w+)*/(?:\w+\.\w+)?)`")
"""A file or a folder, such as `worker/leases.py` or `errors/`."""
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


_SOURCES = ROOT / "src" / "bullpen"
_ROOMS = {path.name for path in _SOURCES.iterdir()}


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_named_modules_exist(page: Path) -> None:
    """A file or folder that a page names by its place in `src/bullpen` is there."""
    named = {match["path"] for match in _MODULE.finditer(prose(page))}
    ours = {path for path in named if path.partition("/")[0] in _ROOMS}
    assert not {path for path in ours if not (_SOURCES / path).exists() and not (ROOT / path).exists()}


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "explanation" / "internals.md"])
def test_pages_on_the_code_name_files_that_are_there(page: Path) -> None:
    """Also those that stand in no folder, such as `app.py`."""
    named = set(re.findall(r"`(\w+\.py)`", prose(page)))
    assert not {name for name in named if not (_SOURCES / name).is_file()}


def test_the_table_of_rooms_is_that_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [name.removeprefix("bullpen.") for one in contracts if one["type"] == "layers" for name in one["layers"]]
    table = section(ROOT / "docs" / "explanation" / "internals.md", "## The rooms")
    assert [room for room, *_ in rows(table)] == layers
