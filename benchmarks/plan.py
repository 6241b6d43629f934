"""A run's trials, in the order in which each round makes them.

What a ratio compares stands side by side, so that both meet the machine in the same mood.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from benchmarks import bullpen_trials as on_sqlite
from benchmarks import limit_trials as limit
from benchmarks import own
from benchmarks.peers.environments import Command, NotInstalled
from benchmarks.peers.roster import NODE, PEERS, PYPI, Peer
from benchmarks.redis import trials as on_redis
from benchmarks.series import Ratio, parts
from benchmarks.system_trials import living, picking_up
from benchmarks.trials import Trial

Commands = Mapping[str, Command | NotInstalled]
"""How each peer is driven, by the name of its environment."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much a run does; one job at a time is slow, so such trials do a part of `jobs`."""

    rounds: int
    jobs: int
    samples: int
    quick: bool = False

    @property
    def few_jobs(self) -> int:
        return max(200, self.jobs // 10)

    @property
    def some_jobs(self) -> int:
        return max(200, self.jobs // 4)

    @property
    def few_samples(self) -> int:
        """For those whose latency is not compared with ours."""
        return max(20, self.samples // 5)


def peers_of(sizes: Sizes) -> list[Peer]:
    return [peer for peer in PEERS if peer.quick or not sizes.quick]


def _driving(name: str, commands: Commands) -> Command | NotInstalled:
    return commands.get(name, NotInstalled("left out"))


def all_trials(sizes: Sizes, script: Path, commands: Commands) -> list[Trial]:
    peers = peers_of(sizes)
    lives = {peer.system: living(peer.system, _driving(peer.environment.name, commands), sizes.jobs) for peer in peers}
    beside = [trial for system, trial in lives.items() if system is not NODE]
    half = len(beside) // 2
    return [
        *_redis_drains(sizes, script, lives[NODE]),
        *beside[:half],
        *_sqlite_drains(sizes, script),
        *beside[half:],
        *_adds_on_sqlite(sizes),
        *_pickups(sizes, peers, commands),
        *_at_rest(sizes, commands),
    ]


def _redis_drains(sizes: Sizes, script: Path, node: Trial) -> list[Trial]:
    return [
        living(on_redis.AT_50, on_redis.COMMAND, sizes.jobs),
        node,
        on_redis.drained_alone(on_redis.AT_100, sizes.jobs),
        limit.on_redis(script, sizes.jobs),
        on_redis.drained_alone(on_redis.AT_200, sizes.jobs),
        living(on_redis.WITH_AOF, on_redis.COMMAND, sizes.jobs),
        on_redis.drained_alone(on_redis.AT_50, sizes.jobs, defaults=True),
        on_redis.processes(1, sizes.jobs),
        on_redis.processes(4, sizes.jobs),
    ]


def _sqlite_drains(sizes: Sizes, script: Path) -> list[Trial]:
    return [
        on_sqlite.draining(50, "full", sizes.jobs),
        limit.on_sqlite(script, "full", sizes.jobs),
        on_sqlite.draining(50, "normal", sizes.jobs),
        limit.on_sqlite(script, "normal", sizes.jobs),
        on_sqlite.draining(200, "full", sizes.jobs),
        on_sqlite.draining(200, "normal", sizes.jobs),
        on_sqlite.draining(50, "full", sizes.jobs, keep_all=False),
        on_sqlite.processes(1, sizes.jobs),
        on_sqlite.processes(4, sizes.jobs),
    ]


def _adds_on_sqlite(sizes: Sizes) -> list[Trial]:
    return [
        on_sqlite.adding("one", "full", sizes.few_jobs),
        on_sqlite.adding("concurrent", "full", sizes.some_jobs),
        on_sqlite.adding("bulk", "full", sizes.jobs),
        on_sqlite.adding("one", "normal", sizes.some_jobs),
        on_sqlite.adding("concurrent", "normal", sizes.jobs),
        on_sqlite.adding("bulk", "normal", sizes.jobs),
    ]


def _pickups(sizes: Sizes, peers: list[Peer], commands: Commands) -> list[Trial]:
    compared = [
        picking_up(on_redis.AT_50, on_redis.COMMAND, sizes.samples),
        on_sqlite.pickup_apart(sizes.samples),
        on_sqlite.pickup_alone(sizes.few_samples),
    ]
    for peer in peers:
        samples = sizes.samples if peer.system.sampled else sizes.few_samples
        compared.append(picking_up(peer.system, _driving(peer.environment.name, commands), samples))
    return compared


def _at_rest(sizes: Sizes, commands: Commands) -> list[Trial]:
    """Made once: these count bytes, not time."""
    bullmqs = {NODE: "bullmq-node"} if sizes.quick else {NODE: "bullmq-node", PYPI: "bullmq-pypi"}
    return [
        on_redis.weighing(on_redis.AT_50, on_redis.COMMAND, sizes.jobs),
        *(on_redis.weighing(system, _driving(name, commands), sizes.jobs) for system, name in bullmqs.items()),
    ]


def own_part(sizes: Sizes) -> tuple[list[Trial], list[Ratio]]:
    """Bullpen's measures of itself: those that have a target first, since a run may be ended before it is through."""
    ratios = own.ratios()
    with_target = {series for ratio in ratios for series in parts(ratio.over)}
    trials = sorted(own.trials(quick=sizes.quick), key=lambda trial: with_target.isdisjoint(trial.series))
    # Made once: they compare Bullpen with itself, and each repeats within itself what is timed.
    return [dataclasses.replace(trial, once=True) for trial in trials], ratios
