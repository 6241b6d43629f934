"""`bullpen doctor`: what is wrong, and what to do about it."""

import argparse

from bullpen.cli.findings import about_file, about_python, about_queue, about_workers
from bullpen.cli.showing import Show
from bullpen.cli.tables import Style, clean, clip
from bullpen.cli.verb import NO, OK, UNREACHABLE, Verb, no_arguments, require_file
from bullpen.errors import StoreError, StoreUnavailable
from bullpen.settings import store_from
from bullpen.stores.base import Store
from bullpen.stores.finding import Finding
from bullpen.stores.sqlite import SqliteStore
from bullpen.stores.sqlite.diagnosing import diagnose

_STYLES: dict[str, Style] = {"ok": "green", "warn": "yellow", "bad": "red"}
_EXAMPLES = """
  bullpen doctor
  bullpen doctor --json || echo "something is wrong"

  Exits with 1 if anything is bad, with 3 if there is no store to look at.
"""


async def run(args: argparse.Namespace, show: Show) -> int:
    store = store_from(args.store)
    code = OK
    found = [about_python(), *await _about_sandbox(), *await _about_secrets()]
    try:
        found += await _examine(store, show)
    except StoreError as error:
        found.append(
            Finding("bad", "store", f"{error} [{error.code}]", "check the address, and that it can be written")
        )
        code = UNREACHABLE if isinstance(error, StoreUnavailable) else NO
    if any(finding.level == "bad" for finding in found):
        code = code or NO
    if show.as_json:
        show.document({"ok": code == OK, "findings": [finding._asdict() for finding in found]})
    else:
        _tell(show, found)
    return code


async def _about_sandbox() -> list[Finding]:
    try:
        from bullpen.agents.sandbox import Level, isolation_here
    except ImportError:
        return []  # whoever has no agents has no use for it
    here = await isolation_here()
    return [Finding("ok" if here.level >= Level.NAMESPACE else "warn", "sandbox", here.tell(), here.fix)]


async def _about_secrets() -> list[Finding]:
    try:
        from bullpen.cli.secrets import about_secrets
    except ImportError:
        return []  # whoever has no records has no secrets in them
    return await about_secrets()


async def _examine(store: Store, show: Show) -> list[Finding]:
    found: list[Finding] = []
    require_file(store)
    if isinstance(store, SqliteStore):
        with show.progress("checking the file", 0):
            found += about_file(await diagnose(store))
        if any(finding.level == "bad" for finding in found):
            return found  # what is damaged is not opened for writing
    elif store.facts.name == "redis":
        found += await _examine_server(store)
        if any(finding.check == "server" and finding.level == "bad" for finding in found):
            return found  # it would be refused
    await store.open()
    try:
        found.append(Finding("ok", "store", f"{store.facts.name}: opened and answers"))
        found += await _live(store)
    finally:
        await store.close()
    return found


async def _examine_server(store: Store) -> list[Finding]:
    from bullpen.stores.redis import RedisStore
    from bullpen.stores.redis.diagnosing import diagnose as diagnose_server

    assert isinstance(store, RedisStore)
    return await diagnose_server(store)


async def _about_groups(store: Store, name: str) -> list[Finding]:
    """Turns and caps hold among our workers only."""
    if store.facts.name != "redis" or not (await store.groups(name, limit=1)).groups:
        return []
    from bullpen.stores.redis import RedisStore
    from bullpen.stores.redis.diagnosing import node_workers

    assert isinstance(store, RedisStore)
    foreign = await node_workers(store, name)
    if not foreign:
        return []
    message = f"has groups, and BullMQ workers ({foreign}) that know of none"
    return [
        Finding("warn", f"queue {name}", message, "let only Bullpen workers serve it: caps and turns hold for them")
    ]


async def _live(store: Store) -> list[Finding]:
    workers = await store.workers()
    found = about_workers(workers)
    queues = await store.queues()
    for name in queues:
        found += await about_queue(store, name, await store.counts(name), workers)
        found += await _about_groups(store, name)
    if not any(finding.check.startswith("queue ") for finding in found):
        found.append(Finding("ok", "queues", f"{len(queues)}, nothing to say about them"))
    return found


def _tell(show: Show, found: list[Finding]) -> None:
    label = max(len(finding.check) for finding in found)
    for finding in found:
        head = f"{finding.level:<4}  {clean(finding.check):<{label}}  "
        room = None if show.width is None else max(10, show.width - len(head))
        message = clean(finding.message)
        mark = show.paint(f"{finding.level:<4}", _STYLES[finding.level])
        for n, line in enumerate(_wrapped(message, room)):
            show.raw((mark + head[4:] if n == 0 else " " * len(head)) + line + "\n")
        for n, line in enumerate(_wrapped(finding.fix, room and room - 2) if finding.fix else []):
            show.raw(" " * len(head) + show.paint(("→ " if n == 0 else "  ") + line, "dim") + "\n")
    counts = {level: sum(finding.level == level for finding in found) for level in _STYLES}
    show.line()
    show.line(", ".join(f"{count} {level}" for level, count in counts.items() if count))


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text]
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = clip(f"{lines[-1]} {word}".strip(), width)
    return lines


VERB = Verb("doctor", "examine the store, workers and queues", _EXAMPLES, no_arguments, run)
