"""Write docs/explanation/promises.md, the table of all that a store promises, from the conformance kit.

    python scripts/promises.py           write the page
    python scripts/promises.py --check   exit 1 if the page is not what would be written

The kit is read, not imported: a test's docstring is its promise, and its name says the kind.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
KIT = ROOT / "src" / "bullpen" / "testing" / "conformance"
PAGE = ROOT / "docs" / "explanation" / "promises.md"

FAMILIES = (
    "opening", "adding", "identifying", "deduplicating", "ordering", "claiming", "settling", "retaining",
    "grouping", "capping", "choosing", "limiting",
    "exchanging", "requesting", "renewing", "abandoning", "rescuing", "waiting", "expecting", "cancelling", "retrying",
    "flows", "policies", "families", "children", "steering", "removing",
    "noting", "parking", "journaling", "signalling",
    "pausing", "scheduling", "ticking", "looking",
    "events", "workers", "moving", "moving_once", "moving_steps", "remembering",
)  # fmt: skip
"""The modules of the kit in the order in which a reader meets the verbs."""
NOT_FAMILIES = frozenset({"__init__", "carrying", "groups", "kin", "moves", "schedules"})

INTRO = """\
# What a store promises

Each line below is a promise of `bullpen.stores.base.Store` and the test of the conformance kit that holds every \
store to it: {promises} promises, {refusals} refusals (what a store does not do, and that nothing changed) and \
{races} races (what holds though two act at once). `scripts/promises.py` writes this page from the tests; \
run `make promises` after a change.

To run the kit on a store of your own, install it (`pip install 'bullpen[conformance]'`: a wheel of its own, so that \
the base install stays small), write a `conftest.py` with a `harness` fixture (a class with the methods of \
`bullpen.testing.harness.Harness`) and a `store` fixture that returns `await harness.open()`, and one test module \
for each family:

```python
from bullpen.testing.conformance.adding import *
```

Then run `pytest` with pytest-asyncio in auto mode. `bullpen.testing.conformance` tells the rest.
"""


@dataclass(frozen=True)
class Promise:
    text: str
    kind: str
    test: str


@dataclass(frozen=True)
class Family:
    module: str
    title: str
    promises: tuple[Promise, ...]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--check", action="store_true", help="exit 1 if the page is not up to date")
    page = _page([_read(module) for module in _modules()])
    if not options.parse_args().check:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not up to date with the conformance kit: run `make promises`")


def _modules() -> tuple[str, ...]:
    """The families in their order, or an end with a word on what is missing."""
    found = {path.stem for path in KIT.glob("*.py")} - NOT_FAMILIES
    if strangers := found ^ set(FAMILIES):
        sys.exit(f"scripts/promises.py: FAMILIES and the kit differ in {', '.join(sorted(strangers))}")
    return FAMILIES


def _read(module: str) -> Family:
    tree = ast.parse((KIT / f"{module}.py").read_text(encoding="utf-8"))
    heading, gap, more = (ast.get_docstring(tree) or "").removeprefix("Promises of ").partition("\n\n")
    title = heading[:1].upper() + heading[1:].removesuffix(".")
    return Family(module, title + gap + more, tuple(_promises(module, tree)))


def _promises(module: str, tree: ast.Module) -> Iterator[Promise]:
    for node in tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
            text = ast.get_docstring(node)
            if not text:
                sys.exit(f"{module}.py: {node.name} has no docstring, so nobody can read what it promises")
            yield Promise(_first_sentence(text), _kind(node.name), node.name)


def _kind(test: str) -> str:
    if test.startswith("test_refuses_"):
        return "refusal"
    return "race" if test.startswith("test_race_") else "promise"


def _first_sentence(text: str) -> str:
    sentence, stop, _ = " ".join(text.split()).partition(". ")
    return (sentence + stop).strip().replace("|", "\\|")


def _page(families: list[Family]) -> str:
    kinds = [promise.kind for family in families for promise in family.promises]
    parts = [INTRO.format(promises=kinds.count("promise"), refusals=kinds.count("refusal"), races=kinds.count("race"))]
    for family in families:
        rows = [f"| {promise.text} | {promise.kind} | `{promise.test}` |" for promise in family.promises]
        parts.append("\n".join([f"## {family.title}", "", f"`bullpen.testing.conformance.{family.module}`", ""]))
        parts[-1] += "\n" + "\n".join(["| Promise | Kind | Test |", "|---|---|---|", *rows]) + "\n"
    return "\n".join(parts)


if __name__ == "__main__":
    main()
