"""The reference page of testing has a line for each thing that is there, and none for what is not."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import bullpen.testing
from bullpen.testing import plugin, run_until_empty, test_context
from tests.docs.pages import REFERENCE, rows, section

PAGE = REFERENCE / "testing.md"


def test_every_name_has_its_line() -> None:
    names = [row[0] for row in rows(PAGE.read_text().partition("\n## ")[0])]
    assert sorted(names) == sorted(bullpen.testing.__all__)


@pytest.mark.parametrize("function", [run_until_empty, test_context], ids=lambda function: function.__name__)
def test_every_option_has_its_line(function: Callable[..., Any]) -> None:
    documented = {row[0]: row[1] for row in rows(section(PAGE, f"## {function.__name__}"))}
    parameters = inspect.signature(function).parameters.values()
    assert documented == {
        one.name: "required" if one.default is one.empty else f"`{one.default!r}`" for one in parameters
    }


def test_every_fixture_has_its_line() -> None:
    documented = [row[0] for row in rows(section(PAGE, "## The pytest plugin"))]
    assert sorted(documented) == sorted(name for name in vars(plugin) if name.startswith("bullpen_"))
