"""`bullpen job QUEUE ID`: all that is known of one job."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from bullpen.cli.jobs import STATE_STYLE
from bullpen.cli.journal import entry_json, show_journal
from bullpen.cli.records import child_json, job_json, payload
from bullpen.cli.showing import Show
from bullpen.cli.times import ago, span, stamp
from bullpen.cli.verb import OK, Verb, add_job, opened
from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import JobMissing
from bullpen.job.entries import JournalEntry
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import State
from bullpen.queue.queue import Queue
from bullpen.stores.base import Child, ChildPage, LogPage, Store

_LABEL = 10
_CHILDREN = 100
"""Shown at most; the first ones, in the store's order."""


async def run(args: argparse.Namespace, show: Show) -> int:
    ref = JobRef(args.queue, args.id)
    async with opened(args) as store:
        job = await store.job(ref)
        logs = await store.logs(ref)
        steps = await Queue(store, args.queue).job(args.id).journal()
        page = await store.children(ref, limit=_CHILDREN)
        states = {child.ref: await _state(store, child) for child in page.children}
    if show.as_json:
        children = [child_json(child, states[child.ref]) for child in page.children]
        more = page.next_cursor is not None
        logged = {"logs": list(logs.lines), "logs_total": logs.total, "journal": [entry_json(entry) for entry in steps]}
        show.document({**job_json(job), "children": children, "children_left_out": more, **logged})
    else:
        _tell(show, job, logs, steps)
        _tell_children(show, page, states)
    return OK


def _tell(show: Show, job: JobRecord, logs: LogPage, steps: list[JournalEntry]) -> None:
    state = show.paint(job.state.value, STATE_STYLE.get(job.state, "green"))
    show.raw(f"{show.paint(str(job.ref), 'bold')}  {state}\n")
    for label, text in _facts(job):
        show.raw(show.paint(f"{label:<{_LABEL}}", "dim"))
        show.line(text)
    _section(show, "data", _pretty(payload(job.data)))
    if job.progress is not None:
        _section(show, "progress", _pretty(payload(job.progress)))
    if job.state == State.COMPLETED:
        _section(show, "result", _pretty(payload(job.result)))
    _tell_failure(show, job)
    if steps:
        show_journal(show, steps, job.state, SYSTEM_CLOCK.now_ms())
    if logs.lines:
        left_out = f" (the first {len(logs.lines):,} of {logs.total:,})" if logs.total > len(logs.lines) else ""
        _section(show, f"log{left_out}", "\n".join(logs.lines))


async def _state(store: Store, child: Child) -> State | None:
    """Where the child itself is; None if it is gone."""
    try:
        return (await store.job(child.ref)).state
    except JobMissing:
        return None


def _tell_children(show: Show, page: ChildPage, states: Mapping[JobRef, State | None]) -> None:
    if not page.children:
        return
    left_out = f" (the first {len(page.children):,})" if page.next_cursor is not None else ""
    show.raw("\n" + show.paint(f"children{left_out}", "dim") + "\n")
    for child in page.children:
        state = states[child.ref]
        where = "gone" if state is None else state.value
        show.line(f"  {child.ref}  {child.state.value}, {where}{f': {child.reason}' if child.reason else ''}")


def _facts(job: JobRecord) -> list[tuple[str, str]]:
    now_ms = SYSTEM_CLOCK.now_ms()
    crashes = ", ".join(f"{count} × {kind}" for kind, count in job.crashes.items())
    found = [
        ("name", job.name),
        ("added", _moment(job.added_ms, now_ms)),
        ("due", _moment(job.run_at_ms, now_ms) if job.state == State.DELAYED else ""),
        ("started", _moment(job.started_ms, now_ms)),
        ("finished", _moment(job.finished_ms, now_ms) + _took(job)),
        ("attempts", f"{job.attempts_made} of {job.spec.attempts}"),
        ("priority", str(job.priority) if job.priority else "none"),
        ("crashes", crashes),
        ("worker", job.worker or "" if job.state == State.ACTIVE else ""),
        ("to stop", job.cancelling or "yes" if job.cancelling is not None else ""),
        ("note", job.note or ""),
        ("waits for", ", ".join(job.parked or ())),
        ("parent", str(job.parent) if job.parent is not None else ""),
        ("to fail", job.doomed.message if job.doomed is not None else ""),
        ("tenant", job.tenant or ""),
        ("workspace", job.spec.workspace or ""),
        ("tags", ", ".join(job.spec.tags)),
        ("headers", ", ".join(f"{name}={value}" for name, value in job.spec.headers.items())),
    ]
    return [(label, text) for label, text in found if text]


def _moment(at_ms: int | None, now_ms: int) -> str:
    return f"{stamp(at_ms)}  ({ago(at_ms, now_ms)})" if at_ms else ""


def _took(job: JobRecord) -> str:
    if not job.finished_ms or not job.started_ms:
        return ""
    return f", took {span(job.finished_ms - job.started_ms)}"


def _tell_failure(show: Show, job: JobRecord) -> None:
    if job.failure is None or job.state == State.COMPLETED:
        return
    what = f"{job.failure.type}: {job.failure.message}" if job.failure.type else job.failure.message
    show.raw(show.paint(f"\nerror ({job.failure.kind.value})", "dim") + "\n")
    show.block(what or job.failure.kind.value, "red")
    stack = job.failure.stack or (job.stacks[-1] if job.stacks else "")
    if stack:
        show.block(stack, "dim")
    if len(job.stacks) > 1:
        show.line(f"  {len(job.stacks)} stacks are kept; --json shows all", "dim")


def _section(show: Show, title: str, text: str) -> None:
    show.raw("\n" + show.paint(title, "dim") + "\n")
    show.block(text)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


VERB = Verb(
    "job",
    "show one job: data, error, attempts, steps, family, log",
    "  bullpen job mail 17\n  bullpen job mail order-1 --json",
    add_job,
    run,
)
