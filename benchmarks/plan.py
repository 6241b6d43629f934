"""A run's trials, in the order in which each round makes them, and what is compared.

What a ratio compares stands side by side, so that both meet the machine in the same mood.
"""

import dataclasses
from pathlib import Path

from benchmarks.bullpen_trials import (
    adding,
    drain_series,
    draining,
    enqueue_series,
    growth,
    growth_series,
    pickup_alone,
    pickup_apart,
    processes,
    processes_series,
)
from benchmarks.peer_trials import HUEY_DRAIN, HUEY_ENQUEUE, huey_life, huey_pickup, limit_series, limiting
from benchmarks.peers.huey_setup import Huey, NotInstalled
from benchmarks.series import Ratio
from benchmarks.trials import Trial

FEW_WAITING = 1_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much a run does; one job at a time is slow, so such trials do a part of `jobs`."""

    rounds: int
    jobs: int
    samples: int
    waiting: int

    @property
    def few_jobs(self) -> int:
        return max(200, self.jobs // 10)

    @property
    def some_jobs(self) -> int:
        return max(200, self.jobs // 4)


def all_trials(sizes: Sizes, limit: Path, huey: Huey | NotInstalled) -> list[Trial]:
    return [
        draining(1, "full", sizes.few_jobs),
        draining(10, "full", sizes.some_jobs),
        adding("one", "full", sizes.few_jobs),
        huey_life(huey, sizes.some_jobs),
        draining(50, "full", sizes.jobs),
        limiting(limit, "full", 50, sizes.jobs),
        draining(50, "normal", sizes.jobs),
        limiting(limit, "normal", 50, sizes.jobs),
        limiting(limit, "normal", 200, sizes.jobs),
        draining(200, "full", sizes.jobs),
        draining(50, "full", sizes.jobs, keep_all=False),
        processes(1, sizes.jobs),
        processes(4, sizes.jobs),
        adding("concurrent", "full", sizes.some_jobs),
        adding("bulk", "full", sizes.jobs),
        adding("one", "normal", sizes.some_jobs),
        adding("concurrent", "normal", sizes.jobs),
        adding("bulk", "normal", sizes.jobs),
        pickup_alone(sizes.samples),
        pickup_apart(sizes.samples),
        huey_pickup(huey, sizes.samples),
        growth(FEW_WAITING),
        growth(sizes.waiting),
    ]


def all_ratios(sizes: Sizes) -> list[Ratio]:
    full, normal = drain_series(50, "full"), drain_series(50, "normal")
    (few_steps, few_bytes), (many_steps, many_bytes) = growth_series(FEW_WAITING), growth_series(sizes.waiting)
    return [
        Ratio("sqlite_full_drain_vs_huey", full, HUEY_DRAIN, target="≥ 8"),
        Ratio("sqlite_normal_drain_vs_huey", normal, HUEY_DRAIN),
        Ratio("sqlite_drain_vs_limit", full, limit_series("full", 50)[1]),
        Ratio("sqlite_four_processes_vs_one", processes_series(4), processes_series(1), target="≥ 0.85"),
        Ratio("sqlite_enqueue_vs_huey", enqueue_series("one", "full"), HUEY_ENQUEUE),
        Ratio("sqlite_claim_steps_growth", many_steps, few_steps),
        Ratio("sqlite_claim_bytes_growth", many_bytes, few_bytes),
    ]
