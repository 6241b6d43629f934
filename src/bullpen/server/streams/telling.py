"""Events in the words of the streams, each written once however many hear it."""

from typing import Any

import msgspec

from bullpen.job.events import Event, EventKind
from bullpen.server.models.jobs import shown_payload, without_child

GAP = "gap"
_SIZE = 200
_encode = msgspec.json.Encoder().encode


class _Words(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An event as readers have it: only what is set, in this order."""

    queue: str
    kind: str
    cursor: str
    at_ms: int | None = None
    job_id: str | None = None
    name: str | None = None
    tenant: str | None = None
    prev: str | None = None
    run_at_ms: int | None = None
    other_job_id: str | None = None
    count: int | None = None
    value: Any = msgspec.UNSET
    failure: dict[str, Any] | None = None


# Not for the garbage collector to look at: see Event.
class StreamEvent(msgspec.Struct, eq=False, gc=False):
    """An event of a queue, or with none a gap: what was told before may be incomplete."""

    queue: str
    event: Event | None
    cursor: str
    _text: bytes | None = None
    _numbered: bytes | None = None

    @property
    def size(self) -> int:
        """About how much memory it takes."""
        return _SIZE if self.event is None or self.event.value is None else _SIZE + len(self.event.value)

    def without_child(self) -> "StreamEvent":
        """The same for a caller who may not see the child with which the job failed."""
        event = self.event
        if event is None or event.failure is None:
            return self
        failure = msgspec.structs.replace(event.failure, message=without_child(event.failure.message))
        return StreamEvent(self.queue, msgspec.structs.replace(event, failure=failure), self.cursor)

    @property
    def kind(self) -> str:
        return GAP if self.event is None else self.event.kind

    @property
    def text(self) -> bytes:
        """As JSON."""
        if self._text is None:
            self._text = _encode(self._words())
        return self._text

    @property
    def frame(self) -> bytes:
        """As server-sent events have it, without an id."""
        return b"event: %s\ndata: %s\n\n" % (self.kind.encode(), self.text)

    @property
    def numbered_frame(self) -> bytes:
        """The same with the place in its queue's log as the id."""
        if self._numbered is None:
            words = (self.cursor.encode(), self.kind.encode(), self.text)
            self._numbered = b"id: %s\nevent: %s\ndata: %s\n\n" % words
        return self._numbered

    def words(self) -> dict[str, Any]:
        """Only what is set, as the log has it."""
        found: dict[str, Any] = msgspec.to_builtins(self._words())
        return found

    def _words(self) -> _Words:
        event = self.event
        if event is None:
            return _Words(self.queue, GAP, self.cursor)
        return _Words(
            self.queue,
            event.kind,
            event.cursor,
            event.at_ms,
            event.job_id,
            event.name,
            event.tenant,
            event.prev,
            event.run_at_ms,
            event.other_job_id,
            event.count,
            msgspec.UNSET if event.value is None else shown_payload(event.value),
            None if event.failure is None else msgspec.structs.asdict(event.failure),
        )


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a listener wants to hear; what is None is not asked."""

    queue: str | None = None
    queues: frozenset[str] | None = None
    """All that the caller may see."""
    jobs: frozenset[str] | None = None
    """The ids that one job may have, see tenant_names.py."""
    tenant: str | None = None
    kinds: frozenset[EventKind] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether one word says it all: the job, the tenant, or nothing."""
        return self.kinds is None and (self.jobs is None or self.tenant is None)

    def fits(self, event: Event) -> bool:
        return (
            (self.jobs is None or event.job_id in self.jobs)
            and (self.tenant is None or event.tenant == self.tenant)
            and (self.kinds is None or event.kind in self.kinds)
        )

    def fits_queue(self, queue: str) -> bool:
        return self.queue in (None, queue) and (self.queues is None or queue in self.queues)
