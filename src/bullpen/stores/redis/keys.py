"""BullMQ's key layout on Redis: the only place where a key is spelt.

Scripts say `KEY.wait`; loading them puts the name in its place, so that a word which is not
listed here cannot be used there.
"""

import re
from collections.abc import Iterable

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
    "limiter": "limiter",
    "dedup": "de:",
    "dedup_next": "dn:",
    # After a job's own key:
    "lock": ":lock",
    "logs": ":logs",
    "dependencies": ":dependencies",
    "processed_children": ":processed",
    "failed_children": ":failed",
    "unsuccessful_children": ":unsuccessful",
}

NO_CURSOR = "0-0"
"""The id before the first of a stream."""


class Keys:
    """The keys under one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        # BullMQ has no queue with an empty name: what stands there is passed over by its readers.
        self._own = f"{prefix}::bullpen"
        self._meta = re.compile(re.escape(prefix) + ":([^:]+):" + LAYOUT["meta"])

    def base(self, queue: str) -> str:
        """What all keys of the queue begin with."""
        return f"{self._prefix}:{queue}:"

    def queue_of(self, base: bytes) -> str:
        return base[len(self._prefix.encode()) + 1 : -1].decode()

    def remembered_ids(self, queue: str) -> str:
        """What the memory of explicit ids whose jobs were pruned begins with."""
        return f"{self._own}:{queue}:id:"

    def request(self, request: str) -> str:
        """Where the answer to a request is remembered."""
        return f"{self._own}:request:{request}"

    def meta(self, queue: str) -> str:
        return self.base(queue) + LAYOUT["meta"]

    def events(self, queue: str) -> str:
        return self.base(queue) + LAYOUT["events"]

    def marker(self, queue: str) -> str:
        return self.base(queue) + LAYOUT["marker"]

    @property
    def any_meta(self) -> str:
        """A pattern that finds the settings of every queue, and may find more."""
        return re.sub(r"([][*?\\^])", r"\\\1", self._prefix) + ":*:" + LAYOUT["meta"]

    def queue_names(self, found: Iterable[bytes]) -> list[str]:
        """The queues whose settings are among these keys, sorted."""
        matches = (self._meta.fullmatch(key.decode()) for key in found)
        return sorted({match[1] for match in matches if match})
