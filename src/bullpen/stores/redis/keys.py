"""BullMQ's key layout on Redis: the only place where a key is spelt.

Scripts say `KEY.wait`; loading them puts the name in its place, so that a word which is not
listed here cannot be used there.
"""

import re
from collections.abc import Iterable

from bullpen.job.record import JobRef

LAYOUT = {
    "meta": "meta",
    "counter": "id",
    "wait": "wait",
    "paused": "paused",
    "active": "active",
    "prioritized": "prioritized",
    "priority_counter": "pc",
    "delayed": "delayed",
    "waiting_children": "waiting-children",
    "completed": "completed",
    "failed": "failed",
    "events": "events",
    "marker": "marker",
    "stalled": "stalled",
    "stalled_check": "stalled-check",
    "limiter": "limiter",
    "schedulers": "repeat",
    "tick": "repeat:",
    "metrics": "metrics:",
    "metrics_data": ":data",
    "dedup": "de:",
    "dedup_next": "dn:",
    # After a job's own key:
    "lock": ":lock",
    "logs": ":logs",
    "dependencies": ":dependencies",
    "processed_children": ":processed",
    "failed_children": ":failed",
    "unsuccessful_children": ":unsuccessful",
    # Of ours, between the prefix and a queue's name:
    "own_of_queue": "::bullpen:queue:",
    # Of ours, after the prefix:
    "queues": "::bullpen:queues",
    # Of ours, after what a queue's own keys begin with:
    "remembered_ids": "ids",
    "start_by": "start-by",
    "move": "move",
    "arrivals": "arrivals",
    "arrived_signals": "arrived-signals",
    "grouped": "grouped",
    "groups": "groups",
    "ring": "ring",
    "ring_rest": "ring-rest",
    "ring_closed": "ring-closed",
    "ring_present": "ring-present",
    "busy_groups": "busy-groups",
    "group_places": "group-places",
    "group_default": "group-default",
    # Of ours, after the same and before a group's name:
    "group_settings": "group:",
    "group_state": "group-state:",
    "group_line": "group-line:",
    "group_active": "group-active:",
    "journal": "journal:",
    "mailbox": "mailbox:",
    "with_steps": "with-steps",
    # After a place in a journal:
    "value": ":value",
    # Beside the places in a journal:
    "places": "places",
    # Of ours, after what a worker's keys begin with and its name:
    "worker_queues": ":queues",
    "worker_stops": ":stops",
    "worker_bell": ":bell",
}

NO_CURSOR = "0-0"
"""The id before the first of a stream."""


class Keys:
    """The keys under one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        # BullMQ has no queue with an empty name: what stands there is passed over by its readers.
        self._own = f"{prefix}::bullpen"
        self._own_of_queue = prefix + LAYOUT["own_of_queue"]
        self._meta = re.compile(re.escape(prefix) + ":([^:]+):" + LAYOUT["meta"])

    def base(self, queue: str) -> str:
        """What all keys of the queue begin with."""
        return f"{self._prefix}:{queue}:"

    def queue_of(self, base: bytes) -> str:
        return base.decode()[len(self._prefix) + 1 : -1]

    def ref_of(self, job_key: bytes) -> JobRef | None:
        """The job that has this key; None for one under another prefix."""
        own, _, rest = job_key.decode().partition(f"{self._prefix}:")
        queue, _, job_id = rest.partition(":")
        return JobRef(queue, job_id) if not own and queue and job_id else None

    def own(self, queue: str) -> str:
        """What those keys of the queue begin with that BullMQ does not know."""
        return f"{self._own_of_queue}{queue}:"

    @property
    def before_names(self) -> str:
        """What every key of a queue begins with, before the queue's name."""
        return f"{self._prefix}:"

    @property
    def queues(self) -> str:
        """The names of the queues that we know."""
        return self._prefix + LAYOUT["queues"]

    @property
    def queues_searched(self) -> str:
        """There while the whole server was searched for queues not long ago."""
        return f"{self._own}:queues-searched"

    @property
    def queues_searching(self) -> str:
        """There while somebody does."""
        return f"{self._own}:queues-searching"

    @property
    def canary(self) -> str:
        """A key that never exists; why, is told where scripts are run."""
        return f"{self._own}:never"

    def request(self, request: str) -> str:
        """Where the answer to a request is remembered."""
        return f"{self._own}:request:{request}"

    @property
    def workers(self) -> str:
        """Which workers beat, by the time at which each is forgotten."""
        return f"{self._own}:workers"

    @property
    def worker_infos(self) -> str:
        """What each worker said of itself."""
        return f"{self._own}:worker-infos"

    @property
    def worker(self) -> str:
        """What all keys of a worker begin with, before its name."""
        return f"{self._own}:worker:"

    def worker_queues(self, worker: str) -> str:
        """From which queues it claimed."""
        return self.worker + worker + LAYOUT["worker_queues"]

    def worker_stops(self, worker: str) -> str:
        """Which of its jobs are to stop."""
        return self.worker + worker + LAYOUT["worker_stops"]

    def worker_bell(self, worker: str) -> str:
        """What it sleeps on until one of them is to."""
        return self.worker + worker + LAYOUT["worker_bell"]

    def meta(self, queue: str) -> str:
        return self.base(queue) + LAYOUT["meta"]

    def events(self, queue: str) -> str:
        return self.base(queue) + LAYOUT["events"]

    def marker(self, queue: str) -> str:
        return self.base(queue) + LAYOUT["marker"]

    def counter(self, queue: str) -> str:
        """The last number that was given out as an id."""
        return self.base(queue) + LAYOUT["counter"]

    def schedulers(self, queue: str) -> str:
        return self.base(queue) + LAYOUT["schedulers"]

    def remembered_ids(self, queue: str) -> str:
        """Explicit ids of jobs that are gone, by the time until which each is taken."""
        return self.own(queue) + LAYOUT["remembered_ids"]

    def subject_of(self, key: bytes, queue: str) -> str:
        """The deduplication id in a subject's key."""
        return key.decode().removeprefix(self.base(queue) + LAYOUT["dedup"])

    @property
    def any_meta(self) -> str:
        """A pattern that finds the settings of every queue, and may find more."""
        return _literally(self._prefix) + ":*:" + LAYOUT["meta"]

    def any_subject(self, queue: str) -> str:
        """A pattern that finds what stands for the subjects of the queue's jobs."""
        return _literally(self.base(queue)) + LAYOUT["dedup"] + "*"

    def queue_names(self, found: Iterable[bytes]) -> list[str]:
        """The queues whose settings are among these keys, sorted."""
        matches = (self._meta.fullmatch(key.decode()) for key in found)
        return sorted({match[1] for match in matches if match})


def _literally(text: str) -> str:
    """The text as a pattern that finds only itself."""
    return re.sub(r"([][*?\\^])", r"\\\1", text)
