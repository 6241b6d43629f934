"""What the walks of the state machine are made of.

Where the contract leaves an instant open (is a lease that ends now already lost?) they keep
away from it: the clock stands at even seconds, and whatever runs out does so at an odd one. A
server that counts down by itself, while a walk takes its time, has that second to spare.
"""

from typing import Any

from hypothesis import strategies as st

from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.limits import GroupLimits, QueueLimits
from bullpen.job.record import CrashKind, CrashLimits, Failure
from bullpen.job.spec import Dedup, JobSpec, Keep, OnFailure
from bullpen.job.state import FINISHED, READY, State
from bullpen.job.verdicts import (
    AwaitChildren,
    Cancelled,
    Completed,
    Failed,
    Limited,
    Parked,
    Postponed,
    Released,
    Retry,
    Verdict,
)

TICK_MS = 2_000
STATES = list(State)

Draft = dict[str, Any]
"""A job still to be named: its queue and its options; `start_in_ms` counts from now, `dedup` is the walk's."""

queues = st.sampled_from(["a", "b"])
workers = st.sampled_from(["worker-1", "worker-2"])
delays_ms = st.sampled_from([3_000, 401_000, 8_001_000])
leases_ms = st.sampled_from([2_001_000, 12_001_000])
_priorities = st.integers(0, 2)
payloads = st.sampled_from([b"{}", b'{"n":1}', b'{"n":2}'])
seldom = st.integers(0, 4).map(lambda n: n == 4)
wants = st.dictionaries(queues, st.integers(1, 3), min_size=1)
limits = st.sampled_from([CrashLimits(), CrashLimits(killed=0, lost_heartbeat=1), CrashLimits(total=0)])
crash_kinds = st.sampled_from(CrashKind)
deduplications = st.sampled_from(
    [
        Dedup("plain"),
        Dedup("throttle", ttl_ms=2_401_000),
        Dedup("throttle-extend", ttl_ms=2_401_000, extend=True),
        Dedup("replace", replace=True),
        Dedup("debounce", ttl_ms=2_401_000, extend=True, replace=True),
        Dedup("keep-last", keep_last_if_active=True),
    ]
)
# One count in a queue: what jobs with different ones leave of a batch that ends at once is a store's choice.
KEPT = {"a": (Keep(count=2), Keep()), "b": (JobSpec().keep_completed, Keep(count=2))}

groups = st.sampled_from(["g", "h"])
# Weights of which the turns are exact: what a store makes of thirds of a turn is its own.
_weights = st.none() | st.sampled_from([1, 2, 4])
_few = st.none() | st.integers(1, 2)


def _with_rate(limits: tuple[int | None, ...]) -> dict[str, int | None]:
    weight, concurrency, rate_max, max_size = limits
    rate_ms = None if rate_max is None else 801_000
    return {
        "weight": weight,
        "concurrency": concurrency,
        "rate_max": rate_max,
        "rate_ms": rate_ms,
        "max_size": max_size,
    }


group_limits = st.tuples(_weights, _few, _few, st.none() | st.integers(2, 4)).map(
    lambda one: GroupLimits(**_with_rate(one))
)
queue_limits = st.tuples(_few, _few).map(
    lambda one: QueueLimits(concurrency=one[0], rate_max=one[1], rate_ms=None if one[1] is None else 801_000)
)
_options: dict[str, st.SearchStrategy[Any]] = {
    "id": st.sampled_from(["x", "y", "z"]),
    "group": groups,
    "data": payloads,
    "priority": st.integers(1, 2),
    "delay_ms": delays_ms,
    "lifo": st.just(True),
    "attempts": st.integers(2, 3),
    "start_in_ms": delays_ms,
    "keep_none": st.just(True),
    "keep_logs": st.just(2),
}
drafts: st.SearchStrategy[Draft] = st.builds(
    lambda queue, dedup, options: {"queue": queue, **({"dedup": True} if dedup else {}), **dict(options)},
    queues,
    st.integers(0, 2).map(lambda n: n == 2),
    st.lists(st.one_of([st.tuples(st.just(name), value) for name, value in _options.items()]), max_size=3),
)
_policies = st.none() | st.sampled_from(OnFailure)
_leaves: st.SearchStrategy[Draft] = st.builds(lambda draft, policy: {**draft, "on_failure": policy}, drafts, _policies)


def _with_children(roots: st.SearchStrategy[Draft], below: st.SearchStrategy[Draft]) -> st.SearchStrategy[Draft]:
    children = st.lists(below, min_size=1, max_size=2)
    return st.builds(lambda root, few: {**root, "children": few}, roots, children)


trees = _with_children(drafts, _leaves | _with_children(_leaves, _leaves))
_any = st.one_of(drafts, drafts, trees)
batches = st.lists(_any, min_size=1, max_size=4)
few_drafts = st.lists(_any, max_size=2)
new_children = st.lists(_leaves | _with_children(_leaves, _leaves), min_size=1, max_size=2)
_failures = st.builds(Failure, st.sampled_from(["no answer", "bad data"]))
signals = st.sampled_from(["approved", "paid"])
# The clock of a walk begins at a time of its own; these are before, soon after and long after it.
parked_until_ms = st.sampled_from([1_000_001_000, 1_750_000_401_000, 1_750_012_001_000, 1_760_000_001_000])
_entries = st.builds(
    JournalEntry,
    st.integers(0, 3),
    st.sampled_from(["charge", "ship"]),
    state=st.sampled_from(EntryState),
    value=st.none() | payloads,
)
# One entry for a place: a batch that is sent again finds each as the first one left it.
entry_batches = st.lists(_entries, min_size=1, max_size=3, unique_by=lambda entry: entry.place)
waits = st.builds(JournalEntry, st.integers(0, 3), signals, st.just(EntryKind.WAIT))
verdicts: st.SearchStrategy[Verdict] = st.one_of(
    st.builds(Completed, st.sampled_from([b"null", b"1"])),
    st.builds(Retry, _failures, st.just(0) | delays_ms),
    st.builds(Failed, _failures),
    st.builds(Cancelled, st.just("asked")),
    st.builds(Postponed, delays_ms, st.sampled_from(["", "later"])),
    st.builds(Released, st.none() | crash_kinds),
    st.builds(Limited, delays_ms, st.booleans()),
    st.builds(Parked, st.none() | parked_until_ms, st.lists(signals, max_size=2).map(tuple), st.just("waits")),
    st.just(AwaitChildren()),
)


def _step(verb: str, **options: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(verb), st.fixed_dictionaries(options))


steps_of_a_job = st.one_of(
    _step("cancel", reason=st.just("asked")),
    _step("retry"),
    _step("promote"),
    _step("change_delay", delay_ms=delays_ms),
    _step("change_priority", priority=_priorities),
    _step("remove"),
    _step("update_data", data=payloads),
    _step("set_progress", progress=payloads),
    _step("add_log", lines=st.lists(st.just("line"), max_size=3)),
)
APT = {
    "cancel": READY | {State.DELAYED, State.ACTIVE, State.WAITING_CHILDREN},
    "retry": FINISHED,
    "promote": {State.DELAYED},
    "change_delay": {State.DELAYED},
    "change_priority": READY | {State.DELAYED, State.ACTIVE, State.WAITING_CHILDREN},
}
"""In which states a step is not refused, where that is not all."""
steps_of_groups = st.one_of(
    _step("set_group", group=groups, limits=st.none() | group_limits),
    _step("set_group_default", limits=group_limits),
    _step("pause_group", group=groups),
    _step("resume_group", group=groups),
    _step("resume_group", group=groups),
    _step("set_limits", limits=queue_limits),
    _step("set_limits", limits=st.just(QueueLimits())),
)
steps_of_a_queue = st.one_of(
    _step("pause"),
    _step("resume"),
    _step("resume"),
    _step("retry_all", state=st.sampled_from([State.FAILED, State.COMPLETED, State.WAITING]), limit=st.integers(1, 5)),
    _step("drain", delayed=st.booleans()),
    _step("clean", state=st.sampled_from(STATES), older_than_ms=st.sampled_from([0, 399_000]), limit=st.integers(1, 5)),
    _step("obliterate", force=seldom),
)
