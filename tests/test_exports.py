"""The front door: every name that it promises is there, and says what it is."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import bullpen
import bullpen.agents
import bullpen.agents.llm
import bullpen.records
import bullpen.remote
import bullpen.server
from bullpen import BullpenError, errors

_CONSTANTS = {"FROM_START", "NOT_MADE"}
_LATE = [bullpen.agents, bullpen.agents.llm, bullpen.records, bullpen.remote, bullpen.server]


def _all_errors() -> dict[str, type[BullpenError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, BullpenError)
    }


@pytest.mark.parametrize("package", [bullpen, *_LATE], ids=lambda package: package.__name__)
def test_the_list_is_sorted_and_names_nothing_twice(package: ModuleType) -> None:
    names = package.__all__
    assert len(set(names)) == len(names)
    constants = [name for name in names if name.isupper()]
    classes = [name for name in names if name[0].isupper() and not name.isupper()]
    functions = [name for name in names if name[0].islower()]
    assert names == [*sorted(constants), *sorted(classes), *sorted(functions)]


@pytest.mark.parametrize("name", bullpen.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    value = getattr(bullpen, name)
    if name in _CONSTANTS:
        return
    documented = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert documented, f"{name} does not say what it is"


def test_every_public_name_of_the_package_is_listed() -> None:
    """What can be imported from the front door is meant to be."""
    modules = {name for name, value in vars(bullpen).items() if inspect.ismodule(value)}
    public = {name for name in vars(bullpen) if not name.startswith("_")} - modules
    assert public == set(bullpen.__all__)


def test_all_errors_are_exported() -> None:
    assert _all_errors().keys() <= set(bullpen.__all__)
    for name, error in _all_errors().items():
        assert getattr(bullpen, name) is error


def test_the_errors_list_themselves() -> None:
    assert errors.__all__ == sorted(_all_errors())


def test_every_error_has_a_code_of_its_own() -> None:
    """Programs match on codes, so none may mean two things; and each says its own, not its parent's."""
    codes = [vars(error).get("code") for error in _all_errors().values()]
    assert all(isinstance(code, str) and re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)
    assert len(set(codes)) == len(codes)


def test_no_error_is_defined_elsewhere() -> None:
    """`bullpen.errors` is the one place to look."""
    waiting: list[type[BullpenError]] = [BullpenError]
    found: set[str] = set()
    while waiting:
        kind = waiting.pop()
        if kind.__module__.startswith("bullpen."):
            found.add(kind.__name__)
        waiting += kind.__subclasses__()
    assert found == _all_errors().keys()


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    assert errors.__doc__ is not None
    drawn = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)*\b", errors.__doc__.partition("Each class")[0]))
    assert _all_errors().keys() <= drawn


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(bullpen.__file__).parent / "py.typed").exists()


# ── rooms whose names are imported late ──────────────────────────────────────────────────


def _imports(package: ModuleType, *, for_checkers: bool) -> dict[str, str]:
    """The names that its source imports, with the modules that they come from."""
    assert package.__file__ is not None
    tree = ast.parse(Path(package.__file__).read_text())
    looked_at = [node for node in tree.body if isinstance(node, ast.If)] if for_checkers else [tree]
    found = (node for top in looked_at for node in top.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in found for alias in node.names}


@pytest.mark.parametrize("package", _LATE, ids=lambda package: package.__name__)
def test_names_that_are_imported_late_are_those_that_type_checkers_see(package: ModuleType) -> None:
    """Also the very same things, and each says what it is."""
    names = _imports(package, for_checkers=True)
    others = _imports(package, for_checkers=False).keys() - {"TYPE_CHECKING"}
    assert set(package.__all__) == names.keys() | others
    for name, home in names.items():
        found = getattr(package, name)
        assert found is getattr(importlib.import_module(home), name)
        assert name in _CONSTANTS or found.__doc__, f"{name} does not say what it is"


@pytest.mark.parametrize("package", _LATE, ids=lambda package: package.__name__)
def test_what_is_not_there_is_missed_as_everywhere(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        _ = package.nothing


def test_a_room_is_entered_without_all_that_is_in_it() -> None:
    """Who needs one part of the agents does not wait for the others, nor need what they need."""
    program = "import sys, bullpen.agents.llm, bullpen.records, bullpen.remote; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "bullpen.agents.llm" in loaded
    assert not loaded & {"sqlalchemy", "httpx", "bullpen.agents.agents", "bullpen.records.records"}
