"""What a run compares, by name; the targets are those of its issue."""

from benchmarks.bullpen_trials import (
    BULLPEN,
    drain_series,
    enqueue_series,
    processes_series,
)
from benchmarks.limit_trials import REDIS_DRAIN, sqlite_series
from benchmarks.peers.roster import DBOS_SQLITE, HUEY_SQLITE, NODE, PEERS, PGQUEUER, PYPI
from benchmarks.redis.trials import AT_50, AT_100, AT_200, WAITING, bytes_series
from benchmarks.redis.trials import processes_series as redis_processes
from benchmarks.series import Best, Ratio, Series
from benchmarks.system_trials import cost, life_cost
from benchmarks.systems import slug
from benchmarks.trials import TRIPS, pickup_series

_REDIS_DRAIN = Best(tuple(ours.drain for ours in (AT_50, AT_100, AT_200)))
_FULL_DRAIN, _NORMAL_DRAIN = (
    Best((drain_series(50, "full"), drain_series(200, "full"))),
    Best((drain_series(50, "normal"), drain_series(200, "normal"))),
)


def all_ratios() -> list[Ratio]:
    return [*_on_redis(), *_on_sqlite(), *_pickups(), *_limits()]


def _on_redis() -> list[Ratio]:
    drains = [
        Ratio("redis_drain_vs_bullmq_node", _REDIS_DRAIN, NODE.drain, "≥ 1.5"),
        Ratio("redis_drain_vs_pgqueuer", _REDIS_DRAIN, PGQUEUER.drain, "≥ 1.3"),
        Ratio("redis_drain_vs_bullmq_py", _REDIS_DRAIN, PYPI.drain, "≥ 8"),
    ]
    others = [peer.system for peer in PEERS if peer.system.store == "Redis" and peer.system not in (NODE, PYPI)]
    drains += [Ratio(f"redis_drain_vs_{slug(other.name)}", _REDIS_DRAIN, other.drain, "≥ 4") for other in others]
    at_once = Best(tuple(peer.system.enqueue("concurrent") for peer in PEERS))
    return [
        *drains,
        Ratio("redis_cpu_vs_bullmq_node", life_cost(AT_50), life_cost(NODE), "≤ 0.6"),
        Ratio("bytes_waiting_vs_bullmq", bytes_series(BULLPEN, WAITING), bytes_series(NODE.name, WAITING), "≤ 1.05"),
        Ratio("round_trips_per_job_at_50", cost(AT_50, TRIPS, "drain"), None, "≤ 0.1"),
        Ratio("redis_bulk_add_vs_bullmq_node", AT_50.enqueue("bulk"), NODE.enqueue("bulk"), "≥ 2"),
        Ratio("redis_concurrent_add_vs_best_peer", AT_50.enqueue("concurrent"), at_once, "≥ 3"),
        Ratio("redis_single_add_vs_bullmq_node", AT_50.enqueue("one"), NODE.enqueue("one")),
        Ratio("redis_four_processes_vs_one", redis_processes(4), redis_processes(1), "≥ 0.85"),
    ]


def _on_sqlite() -> list[Ratio]:
    return [
        Ratio("sqlite_full_drain_vs_huey", _FULL_DRAIN, HUEY_SQLITE.drain, "≥ 12"),
        Ratio("sqlite_normal_drain_vs_huey", _NORMAL_DRAIN, HUEY_SQLITE.drain, "≥ 15"),
        Ratio("sqlite_drain_vs_dbos", _FULL_DRAIN, DBOS_SQLITE.drain, "≥ 100"),
        Ratio("sqlite_single_add_vs_huey", enqueue_series("one", "full"), HUEY_SQLITE.enqueue("one")),
        Ratio("sqlite_four_processes_vs_one", processes_series(4), processes_series(1), "≥ 0.85"),
    ]


def _pickups() -> list[Ratio]:
    def best_peers(percent: int) -> Best:
        rivals = [peer.system for peer in PEERS if peer.system.sampled and peer.system.acknowledges]
        return Best(tuple(rival.pickup_at(percent) for rival in rivals), lowest=True)

    across: Series = pickup_series(BULLPEN, "producer and worker in two processes")[1]
    return [
        *(
            Ratio(f"pickup_redis_p{n}_vs_best_acking_peer", AT_50.pickup_at(n), best_peers(n), "≤ 1.3")
            for n in (50, 99)
        ),
        Ratio("pickup_sqlite_across_processes_p99_ms", across, None, "≤ 20"),
    ]


def _limits() -> list[Ratio]:
    """At the same batch: the limit on Redis has two batches of 50 under way, so 100 jobs are out, on SQLite one."""
    full, normal = sqlite_series("full")[1], sqlite_series("normal")[1]
    return [
        Ratio("redis_drain_vs_limit", AT_100.drain, REDIS_DRAIN, "≥ 0.6"),
        Ratio("sqlite_drain_vs_limit", drain_series(50, "full"), full, "≥ 0.6"),
        Ratio("sqlite_full_drain_vs_limit", drain_series(50, "full"), full, "≥ 0.6"),
        Ratio("sqlite_normal_drain_vs_limit", drain_series(50, "normal"), normal),
    ]
