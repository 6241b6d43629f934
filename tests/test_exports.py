"""The front door: every name that it promises is there, and says what it is."""

import inspect
import re
from pathlib import Path

import pytest

import bullpen
from bullpen import BullpenError, errors

_CONSTANTS = {"FROM_START"}


def _all_errors() -> dict[str, type[BullpenError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, BullpenError)
    }


def test_the_list_is_sorted_and_names_nothing_twice() -> None:
    assert len(set(bullpen.__all__)) == len(bullpen.__all__)
    constants = [name for name in bullpen.__all__ if name.isupper()]
    classes = [name for name in bullpen.__all__ if name[0].isupper() and not name.isupper()]
    functions = [name for name in bullpen.__all__ if name[0].islower()]
    assert bullpen.__all__ == [*sorted(constants), *sorted(classes), *sorted(functions)]


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
