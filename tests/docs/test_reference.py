"""The reference has a line for each thing that is there, and none for what is not."""

import asyncio
import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec
import pytest

from bullpen import (
    Bullpen,
    Context,
    CrashKind,
    CrashLimits,
    DeadFilter,
    Delivery,
    EntryKind,
    EntryState,
    EventKind,
    FailureKind,
    Hooks,
    JobOptions,
    OnFailure,
    Overlap,
    Queue,
    RetryPolicy,
    ScheduleOptions,
    Severity,
    SqliteStore,
    State,
    StepRetry,
    Supervisor,
    WorkerOptions,
    errors,
)
from bullpen.agents.harvesting import Harvest
from bullpen.agents.llm.endpoint import Endpoint
from bullpen.agents.llm.health import HealthRules, Standing
from bullpen.agents.llm.retrying import RetryRules
from bullpen.agents.llm.words import StopReason
from bullpen.agents.sandbox import Ending, Limits, PoolOptions, SandboxSpec
from bullpen.agents.tools.mcp import McpServer
from bullpen.agents.tools.office import CalDavSettings, SmtpSettings
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.jobtypes.jobtype import JobTypeOptions
from bullpen.server import JwtSettings, ServerSettings
from bullpen.settings.names import FAMILIES, NAMES
from bullpen.settings.told import FILE as SETTINGS_FILE
from bullpen.stores.base import AddOutcome, Cancellation, ChildState, WorkerState
from bullpen.telemetry import HealthOptions
from bullpen.worker.desk import FixedDesk
from bullpen.worker.reporting import StoreReporter
from bullpen.worker.supervised import Ended
from tests.docs.pages import REFERENCE, ROOT, rows, section

_REQUIRED = "required"
_SIMPLE = (bool, int, float, str, type(None))


def _errors() -> Iterator[type[errors.BullpenError]]:
    waiting: list[type[errors.BullpenError]] = [errors.BullpenError]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def test_every_error_has_its_line() -> None:
    """Codes are what programs match on, so each is explained, under its class."""
    documented = {row[0]: row[1].strip("`") for row in rows((REFERENCE / "errors.md").read_text())}
    assert documented == {kind.code: kind.__name__ for kind in _errors()}


def _defaults(kind: type) -> dict[str, object]:
    """The fields of an options class, or the arguments of any other, with their defaults."""
    if dataclasses.is_dataclass(kind):
        return {
            field.name: field.default if field.default is not dataclasses.MISSING else ...
            for field in dataclasses.fields(kind)
        }
    if issubclass(kind, msgspec.Struct):
        return {field.name: field.default for field in msgspec.structs.fields(kind)}
    parameters = list(inspect.signature(kind).parameters.values())
    return {one.name: _REQUIRED if one.default is one.empty else one.default for one in parameters}


@pytest.mark.parametrize(
    "kind",
    [
        Bullpen,
        JobTypeOptions,
        Hooks,
        DeadFilter,
        JobOptions,
        ScheduleOptions,
        WorkerOptions,
        RetryPolicy,
        StepRetry,
        CrashLimits,
        Queue,
        SqliteStore,
        Supervisor,
        HealthOptions,
        ServerSettings,
        JwtSettings,
        Endpoint,
        RetryRules,
        HealthRules,
        Limits,
        SandboxSpec,
        PoolOptions,
        Harvest,
        SmtpSettings,
        CalDavSettings,
        McpServer,
    ],
    ids=lambda k: k.__name__,
)
def test_every_option_has_its_line(kind: type) -> None:
    """An option is found with its default, as the code has it."""
    documented = {row[0]: row[1] for row in rows(section(REFERENCE / "options.md", f"## {kind.__name__}"))}
    defaults = _defaults(kind)
    assert documented.keys() == defaults.keys()
    for name, default in defaults.items():
        if default is _REQUIRED:
            assert documented[name] == _REQUIRED
        elif isinstance(default, _SIMPLE):
            assert documented[name] == f"`{default!r}`", name


def test_every_event_has_its_line() -> None:
    """A listener can look up every kind that may come."""
    documented = [row[0] for row in rows((REFERENCE / "events.md").read_text())]
    assert sorted(documented) == sorted(EventKind)


@pytest.mark.parametrize(
    "kind",
    [
        State,
        FailureKind,
        OnFailure,
        ChildState,
        CrashKind,
        WorkerState,
        AddOutcome,
        Cancellation,
        Delivery,
        EntryKind,
        EntryState,
        Ended,
        Overlap,
        Severity,
        StopReason,
        Standing,
        Ending,
    ],
    ids=lambda k: k.__name__,
)
def test_every_word_has_its_line(kind: type[StrEnum]) -> None:
    """Each member of an enumeration that users see is explained."""
    text = section(REFERENCE / "states-and-failures.md", f"## {kind.__name__}")
    assert sorted(row[0] for row in rows(text)) == sorted(kind)


def test_every_variable_has_its_line() -> None:
    """A setting that the code reads is listed, and no other; what users may set, they may set in a file."""
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    used = {name for text in sources for name in re.findall(r"\bBULLPEN_[A-Z_]+", text)}
    table = [(row[0].partition("<")[0], row[1]) for row in rows((REFERENCE / "settings.md").read_text())]
    assert {name for name, _ in table} == used
    by_users = {name for name, setter in table if setter == "you" and not name.endswith("_FILE")}
    assert by_users - {SETTINGS_FILE, *FAMILIES} == NAMES


async def test_every_word_of_the_context_has_its_line(tmp_path: Path) -> None:
    """A handler's author finds all that a context offers."""
    ref = JobRef("mail", "1")
    reporter = StoreReporter(SqliteStore(tmp_path / "queue.db"), ref, asyncio.get_running_loop())
    context = Context(JobRecord(ref, "welcome", b"{}", State.ACTIVE, JobSpec()), {}, FixedDesk(reporter))
    documented = sorted(row[0] for row in rows((REFERENCE / "context.md").read_text()))
    assert documented == sorted(name for name in dir(context) if not name.startswith("_"))
