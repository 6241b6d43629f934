"""Write docs/explanation/interop.md, the table of what Bullpen and BullMQ can do with each other's jobs.

    python scripts/interop.py           write the page
    python scripts/interop.py --check   exit 1 if the page is not what would be written

The tests in tests/interop are read, not imported: `@cell` and `@board` say what each of them shows.
"""

import argparse
import ast
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests" / "interop"
PAGE = ROOT / "docs" / "explanation" / "interop.md"

FEATURES = (
    "add: plain", "add: delayed", "add: prioritized", "add: LIFO", "add: custom id", "add: in bulk",
    "options: all of them read", "deduplication: until it ended", "deduplication: throttle (ttl)",
    "deduplication: extend", "deduplication: replace", "deduplication: debounce", "deduplication: reschedule",
    "deduplication: keep last if active", "process", "retry with backoff", "retry: attempts of both counted together",
    "fail with stack", "unrecoverable", "progress", "logs", "words from outside: progress, log", "remove on complete",
    "remove on fail", "pause, resume", "pause here, resume there", "adds while paused: none lost", "promote",
    "retry of failed", "retry of completed", "remove", "update data", "change delay", "change priority", "drain",
    "clean", "obliterate", "limit of active jobs", "limit of the rate", "group",
    "stalled: taken back",
    "stalled: over the limit", "stalled: a living worker keeps its job", "events", "await the result",
    "workers listed", "getters and counts equal", "schedule: make and list", "schedule: tick", "schedule: limit",
    "schedule: change", "schedule: pause", "schedule: remove", "durable steps: parked jobs",
    "flow: children here, parent there",
    "flow: parent here, children there", "flow: failure of a child", "flow: a child retried", "flow: a child removed",
)  # fmt: skip
"""In the order in which a reader looks for them."""

ONE_WAY = {
    ("workers listed", "peer → Bullpen"): "Bullpen lists its own workers only",
    ("group", "Bullpen → peer"): "BullMQ has no groups",
    ("durable steps: parked jobs", "peer → Bullpen"): "BullMQ has none",
    ("schedule: pause", "peer → Bullpen"): "BullMQ cannot pause one",
}
"""Directions that make no sense or that Bullpen lacks, and why."""

INTRO = """\
# Sharing queues with BullMQ

On Redis, Bullpen keeps its jobs as [BullMQ](https://bullmq.io) does: a queue can have producers, workers and \
dashboards of both. Node may add what Python runs, or the other way round; a job may even have its first attempt \
in one and its second in the other.

The tables show what is tested, with real clients on a real server, in `tests/interop`. Each tick is a test \
that runs with that client; its name is at the end of the line. `scripts/interop.py` writes this page from the tests; \
run `make interop` after a change.

## What to know

- Give the store the same prefix as BullMQ has; both use `bull` by default.
- What BullMQ does not know (timeouts, tenants, tags, headers, start-by times) travels with the job, but BullMQ's \
workers ignore it: they run such a job like any other.
- Each side uses its own clock, as BullMQ's clients do among themselves: keep the machines' clocks in sync.
- BullMQ's two majors pause a queue in different ways, and lose jobs when both of them steer one queue: use one \
major for that. Bullpen follows whichever last opened the queue. One gap remains: a queue that Bullpen paused \
with jobs in it before BullMQ 5.x ever opened it must be resumed by Bullpen, since a resume by 5.x could drop jobs.
- Once one of BullMQ's workers has taken back a job with a priority from a dead worker, the job waits among \
those without one. This is BullMQ's rule, which Bullpen's workers follow. A job that Bullpen takes back keeps its \
priority.
- Flows are shared: a parent of one side may have children of the other. A parent that completes while children are \
pending fails in BullMQ's workers; in Bullpen's it waits for them and runs again.
"""

CELLS = """\
## Bullpen and other clients

“{to_bullpen}”: the other client begins, and Bullpen continues. “{to_peer}”: the other way round. \
A dash (—) shows what the client lacks; `test_lacking.py` proves it.
"""

BOARDS = """\
## Bull Board

The real [Bull Board](https://github.com/felixmosh/bull-board) {version}, asked over HTTP, on queues whose jobs and \
workers are Bullpen's.
"""


@dataclass(frozen=True)
class Shown:
    """What one test shows."""

    feature: str
    direction: str
    lacks: Mapping[str, str]
    test: str


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--check", action="store_true", help="exit 1 if the page is not up to date")
    page = _page(_constants(_tree(TESTS / "cells.py"), {}))
    if not options.parse_args().check:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not up to date with tests/interop: run `make interop`")


# ── reading ──────────────────────────────────────────────────────────────────────────────


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _constants(tree: ast.Module, known: Mapping[str, Any]) -> dict[str, Any]:
    """The module's own names for texts and tables of texts, beside those known already."""
    found = dict(known)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = _value(node.value, found)
            except ValueError:
                continue
    return found


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Tuple(elts=parts):
            return tuple(_value(part, names) for part in parts)
        case ast.Dict(keys=keys, values=values) if all(keys):
            pairs = zip(keys, values, strict=True)
            return {_value(key, names): _value(value, names) for key, value in pairs if key is not None}
    raise ValueError(f"not a constant: {ast.dump(node)}")


def _shown(names: Mapping[str, Any]) -> Iterator[Shown]:
    for path in sorted(TESTS.glob("test_*.py")):
        tree = _tree(path)
        known = _constants(tree, names)
        for node in tree.body:
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name):
                        yield _read(mark, mark.func.id, known, node.name)


def _read(mark: ast.Call, kind: str, known: Mapping[str, Any], test: str) -> Shown:
    given = [_value(argument, known) for argument in mark.args]
    if kind == "board":
        return Shown(given[0], known["BOARD"], {}, test)
    lacks = {word.arg: _value(word.value, known) for word in mark.keywords}.get("lacks", {})
    return Shown(given[0], given[1], lacks, test)


def _versions(names: Mapping[str, Any]) -> dict[str, str]:
    """How each peer is called in the table, with the version that is pinned for the tests."""
    packages = json.loads((TESTS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (pypi,) = [package for package in extras["dev"] if package.startswith("bullmq==")]
    return {
        names["NPM_5"]: f"npm {packages['bullmq5'].rpartition('@')[2]}",
        names["NPM_6"]: f"npm {packages['bullmq']}",
        names["PYPI"]: f"PyPI {pypi.partition('==')[2]}",
        names["BOARD"]: packages["@bull-board/api"],
    }


# ── writing ──────────────────────────────────────────────────────────────────────────────


def _page(names: Mapping[str, Any]) -> str:
    shown = list(_shown(names))
    versions = _versions(names)
    directions = (names["TO_BULLPEN"], names["TO_PEER"])
    _check_features([one for one in shown if one.direction in directions], directions)
    peers = {peer: versions[peer] for peer in names["PEERS"]}
    nodes = {peer: version for peer, version in peers.items() if peer != names["PYPI"]}
    cells = [(feature, direction) for feature in FEATURES for direction in directions]
    boards = [(one.feature, one.direction) for one in shown if one.direction == names["BOARD"]]
    return "\n".join(
        [
            INTRO,
            CELLS.format(to_bullpen=directions[0], to_peer=directions[1]),
            _heading(["Feature", "Direction", *peers.values(), "Tests"]),
            *[_line(shown, cell, peers, [cell[0], cell[1]]) for cell in cells],
            "",
            BOARDS.format(version=versions[names["BOARD"]]),
            _heading(["Bull Board", *[f"on {version}" for version in nodes.values()], "Tests"]),
            *[_line(shown, cell, nodes, [cell[0]]) for cell in dict.fromkeys(boards)],
            "",
        ]
    )


def _check_features(shown: list[Shown], directions: tuple[str, ...]) -> None:
    """End with a word on what the table would lack."""
    found = {one.feature for one in shown}
    if strangers := found ^ set(FEATURES):
        sys.exit(f"scripts/interop.py: FEATURES and the tests differ in {', '.join(sorted(strangers))}")
    for feature in FEATURES:
        for direction in directions:
            has_test = any((one.feature, one.direction) == (feature, direction) for one in shown)
            if has_test == ((feature, direction) in ONE_WAY):
                sys.exit(f"scripts/interop.py: {feature!r}, {direction}: a test or a reason in ONE_WAY, and not both")


def _heading(titles: list[str]) -> str:
    return "| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|"


def _line(shown: list[Shown], cell: tuple[str, str], peers: Mapping[str, str], start: list[str]) -> str:
    tests = [one for one in shown if (one.feature, one.direction) == cell]
    if not tests:
        return "| " + " | ".join([*start, *["—"] * len(peers), ONE_WAY[cell]]) + " |"
    ticks = [_tick(tests, peer) for peer in peers]
    return "| " + " | ".join([*start, *ticks, "<br>".join(f"`{one.test}`" for one in tests)]) + " |"


def _tick(tests: list[Shown], peer: str) -> str:
    reasons = [one.lacks[peer] for one in tests if peer in one.lacks]
    return f"— {reasons[0]}" if len(reasons) == len(tests) else "✓"


if __name__ == "__main__":
    main()
