"""What is measured on Redis, of whom, and what is compared."""

import dataclasses

from benchmarks.peers.bullmq_setup import Command
from benchmarks.peers.huey_setup import NotInstalled
from benchmarks.series import Ratio, Series

ENQUEUE = "enqueue, Redis"
DRAIN = "drain, Redis"
CPU_LIFE = "Redis CPU, whole life"
CPU = "Redis CPU"
CPU_MAIN = "… of it the main thread"
SENT = "commands sent by clients"
CALLED = "commands called by scripts"
TRIPS = "round trips"
READS = "reads of a socket"
BYTES = "bytes at rest"
REMEMBERED = "bytes of remembered answers, for a minute"
MEASURES = (ENQUEUE, DRAIN, CPU_LIFE, CPU, CPU_MAIN, SENT, CALLED, TRIPS, READS, BYTES, REMEMBERED)
"""In the order of the report."""
_US, _BYTES, _A_JOB = "µs/job", "bytes/job", "/job"
_UNITS = {ENQUEUE: "/s", DRAIN: "/s", CPU_LIFE: _US, CPU: _US, CPU_MAIN: _US, BYTES: _BYTES, REMEMBERED: _BYTES}

ONE, AT_ONCE, BULK = "one at a time", "200 at once", "in bulk of 200"
WAITING, DELAYED, COMPLETED = "waiting", "delayed", "completed and kept"

LIMIT_BATCH = 50
_LIMIT, _LIMIT_SETTING = "the limit", f"batches of {LIMIT_BATCH}"
LIMIT_ENQUEUE = Series(_LIMIT, ENQUEUE, _LIMIT_SETTING)
LIMIT_DRAIN = Series(_LIMIT, DRAIN, _LIMIT_SETTING)
LIMIT_CPU = Series(_LIMIT, CPU, f"drain, {_LIMIT_SETTING}", _US)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Something that can be told to add and to drain, and how it is set up here."""

    name: str
    command: Command | NotInstalled
    """Without the port. All results are kept."""
    concurrency: int
    setting: str
    """Of its drain."""
    defaults: Command | None = None
    """The command for jobs with default options, if these keep less than all results."""
    remembers: bool = False
    """Whether it keeps answers for those who lost them."""

    @property
    def with_defaults(self) -> Command | NotInstalled:
        return self.defaults or self.command

    @property
    def drained(self) -> str:
        return f"drain, {self.setting}"

    def series(self, measure: str, setting: str) -> Series:
        return Series(self.name, measure, setting, _UNITS.get(measure, _A_JOB))

    def life(self, way: str) -> Series:
        return self.series(CPU_LIFE, f"added {way}, drained with {self.setting}")


def all_ratios(ours: System, node: System, pypi: System) -> list[Ratio]:
    def beside(name: str, measure: str, setting: str, peer: System = node, target: str = "") -> Ratio:
        return Ratio(name, ours.series(measure, setting), peer.series(measure, setting), target)

    def lives(name: str, way: str, target: str = "") -> Ratio:
        return Ratio(name, ours.life(way), node.life(way), target)

    def drains(name: str, peer: System) -> Ratio:
        return Ratio(name, ours.series(DRAIN, ours.setting), peer.series(DRAIN, peer.setting))

    def drain_cpu(name: str, peer: System) -> Ratio:
        return Ratio(name, ours.series(CPU, ours.drained), peer.series(CPU, peer.drained))

    return [
        lives("redis_cpu_vs_node", BULK, target="≤ 0.6"),
        lives("redis_cpu_added_at_once_vs_node", AT_ONCE),
        lives("redis_cpu_added_singly_vs_node", ONE),
        drain_cpu("redis_drain_cpu_vs_node", node),
        drain_cpu("redis_drain_cpu_vs_pypi", pypi),
        beside("redis_add_in_bulk_cpu_vs_node", CPU, BULK),
        beside("redis_add_singly_cpu_vs_node", CPU, ONE),
        beside("redis_waiting_bytes_vs_node", BYTES, WAITING, target="≤ 1.05"),
        beside("redis_waiting_bytes_vs_pypi", BYTES, WAITING, pypi, target="≤ 1.05"),
        beside("redis_delayed_bytes_vs_node", BYTES, DELAYED),
        beside("redis_completed_bytes_vs_node", BYTES, COMPLETED),
        drains("redis_drain_vs_node", node),
        drains("redis_drain_vs_pypi", pypi),
        Ratio("redis_drain_vs_limit", ours.series(DRAIN, ours.setting), LIMIT_DRAIN),
        beside("redis_enqueue_vs_node", ENQUEUE, ONE),
        beside("redis_enqueue_at_once_vs_node", ENQUEUE, AT_ONCE),
        beside("redis_enqueue_in_bulk_vs_node", ENQUEUE, BULK),
    ]
