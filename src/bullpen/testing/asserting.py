"""Looking for jobs that wait, by what they were added with.

    await assert_queued(pen, welcome, user_id=42)
    await assert_queued(pen, welcome.options(delay=3600), user_id=42)

Only what is named is compared: arguments and options that a test does not mention may be anything.
"""

import inspect
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from bullpen.app import Bullpen
from bullpen.errors import BadData, BadOption, BullpenError, QueueMissing
from bullpen.job.options import OptionFields, with_options
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.jobtypes.arguments import to_plain
from bullpen.jobtypes.jobtype import Adding, JobType
from bullpen.queue.payload import from_bytes
from bullpen.queue.queue import Queue

What = JobType[..., Any] | Adding[..., Any] | str
"""A job type, a job type with options, or the name of a job."""

_STATES = (State.WAITING, State.PRIORITIZED, State.DELAYED)
_SPEC_FIELD = {"delay": "delay_ms", "run_at": "delay_ms", "timeout": "timeout_ms", "start_by": "start_by_ms"}
_CLOSE_MS = 1_000
"""The store notes a job a moment after a time was reckoned for it; with a manual clock they are the same."""
_LISTED = 20


class Queued(msgspec.Struct, frozen=True):
    """A job that waits, with its arguments as the handler will get them."""

    record: JobRecord
    arguments: dict[str, Any]

    @property
    def ref(self) -> JobRef:
        return self.record.ref

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def state(self) -> State:
        return self.record.state

    @property
    def spec(self) -> JobSpec:
        """Its options, in their stored form."""
        return self.record.spec

    def __str__(self) -> str:
        spec = self.spec
        words = [f"{self.ref} {_call(self.name, self.arguments)} {self.state}"]
        if spec.delay_ms:
            words.append(f"delay={spec.delay_ms / 1000:g}")
        words += [
            f"{name}={value!r}"
            for name in ("priority", "tenant", "workspace", "tags")
            if (value := getattr(spec, name))
        ]
        return ", ".join(words)


async def queued(where: Bullpen | Queue, what: What | None = None, /, **arguments: Any) -> list[Queued]:
    """The jobs that wait or are delayed and fit: of this type or name, with these arguments."""
    wanted = _Wanted(what, arguments)
    return [job for job in await _all_queued(where, wanted) if wanted.fits(job)]


async def assert_queued(where: Bullpen | Queue, what: What, /, **arguments: Any) -> list[Queued]:
    """The jobs that fit; AssertionError that lists what is queued instead if there is none."""
    __tracebackhide__ = True
    wanted = _Wanted(what, arguments)
    everything = await _all_queued(where, wanted)
    found = [job for job in everything if wanted.fits(job)]
    if not found:
        there = f"queued are:\n{_list(everything)}" if everything else f"nothing is queued on {_named(where, wanted)}"
        raise AssertionError(f"{wanted} is not queued; {there}")
    return found


async def assert_not_queued(where: Bullpen | Queue, what: What, /, **arguments: Any) -> None:
    """AssertionError that lists the jobs that fit, if there are any."""
    __tracebackhide__ = True
    wanted = _Wanted(what, arguments)
    found = [job for job in await _all_queued(where, wanted) if wanted.fits(job)]
    if found:
        raise AssertionError(f"{wanted} should not be queued, but is:\n{_list(found)}")


class _Wanted:
    """What a test looks for."""

    def __init__(self, what: What | None, arguments: Mapping[str, Any]) -> None:
        self.options: OptionFields = {}
        if isinstance(what, Adding):
            self.options = what.given
            what = what.job_type
        self.type = what if isinstance(what, JobType) else None
        self.name = what.name if isinstance(what, JobType) else what
        self.arguments = arguments
        if self.type is not None:
            _check_names(self.type, arguments)

    def __str__(self) -> str:
        options = [f"{name}={value!r}" for name, value in self.options.items()]
        return ", ".join([_call(self.name or "a job", self.arguments), *options])

    def fits(self, job: Queued) -> bool:
        if self.name is not None and job.name != self.name:
            return False
        return self._arguments_fit(job.arguments) and self._options_fit(job.record)

    def _arguments_fit(self, arguments: Mapping[str, Any]) -> bool:
        return all(name in arguments and _same(arguments[name], value) for name, value in self.arguments.items())

    def _options_fit(self, job: JobRecord) -> bool:
        if not self.options or self.type is None:
            return True
        expected = with_options(self.type.usual, cast(Mapping[str, Any], self.options))
        spec = expected.to_spec(job.added_ms)
        return all(
            job.id == expected.id if name == "id" else _same_option(name, job.spec, spec) for name in self.options
        )


def _check_names(job_type: JobType[..., Any], arguments: Mapping[str, Any]) -> None:
    """A misspelt argument must not make `assert_not_queued` pass."""
    known = _parameters(job_type)
    for name in arguments:
        if name not in known:
            takes = ", ".join(known) or "none"
            raise BadData(f"{job_type.name} has no argument {name!r}; it has {takes}")


def _parameters(job_type: JobType[..., Any]) -> dict[str, inspect.Parameter]:
    """By name, without the context."""
    return dict(list(inspect.signature(job_type.function).parameters.items())[1:])


def _same_option(option: str, found: JobSpec, expected: JobSpec) -> bool:
    field = _SPEC_FIELD.get(option, option)
    one, other = getattr(found, field), getattr(expected, field)
    if option in {"run_at", "start_by"} and one is not None and other is not None:
        return bool(abs(one - other) <= _CLOSE_MS)
    return bool(one == other)


def _same(found: Any, expected: Any) -> bool:
    """Whether they are equal, or are as JSON; so that a model, its fields and `ANY` all can be asked for."""
    if found == expected:
        return True
    try:
        return bool(_as_json(found) == _as_json(expected))
    except BadData:
        return False


def _as_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(to_plain(value, "")))


async def _all_queued(where: Bullpen | Queue, wanted: _Wanted) -> list[Queued]:
    return [job for queue in _queues(where, wanted) for job in await _queued_on(queue, where, wanted)]


def _queues(where: Bullpen | Queue, wanted: _Wanted) -> list[Queue]:
    if isinstance(where, Queue):
        if wanted.type is not None and wanted.type.queue != where.name:
            raise BadOption(f"{wanted.name}: its jobs wait on queue {wanted.type.queue!r}, not on {where.name!r}")
        return [where]
    if wanted.type is not None:
        return [where.queue(wanted.type.queue)]
    return [where.queue(name) for name in sorted({queue for queue, _ in where.types})]


async def _queued_on(queue: Queue, where: Bullpen | Queue, wanted: _Wanted) -> list[Queued]:
    await queue.store.open()
    known = {wanted.type.name: wanted.type} if wanted.type is not None else {}
    if isinstance(where, Bullpen):
        known |= {name: job_type for (on, name), job_type in where.types.items() if on == queue.name}
    found: list[Queued] = []
    try:
        for state in _STATES:
            page = await queue.jobs(state)
            found += [_decoded(job, queue, known) for job in page.jobs]
            while page.next_cursor is not None:
                page = await queue.jobs(state, cursor=page.next_cursor)
                found += [_decoded(job, queue, known) for job in page.jobs]
    except QueueMissing:
        pass  # nothing was ever added to it
    return found


def _decoded(job: JobRecord, queue: Queue, known: Mapping[str, JobType[..., Any]]) -> Queued:
    payload = from_bytes(job.data, what="data", codec=queue.codec)
    job_type = known.get(job.name)
    if job_type is None:
        return Queued(job, payload if isinstance(payload, dict) else {"data": payload})
    try:
        given = job_type.arguments.unpack(payload)
    except BullpenError:
        return Queued(job, payload if isinstance(payload, dict) else {"data": payload})
    return Queued(job, {name: given.get(name, one.default) for name, one in _parameters(job_type).items()})


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _list(jobs: list[Queued]) -> str:
    lines = [f"  {job}" for job in jobs[:_LISTED]]
    if len(jobs) > _LISTED:
        lines.append(f"  … and {len(jobs) - _LISTED} more")
    return "\n".join(lines)


def _named(where: Bullpen | Queue, wanted: _Wanted) -> str:
    return ", ".join(repr(queue.name) for queue in _queues(where, wanted)) or "any queue"
