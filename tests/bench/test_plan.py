"""What a run compares, it measures: a series that is spelt in two ways would say "not measured" for ever."""

from pathlib import Path

import pytest

from benchmarks.peers.environments import NotInstalled
from benchmarks.plan import Sizes, all_trials, own_part, peers_of
from benchmarks.ratios import all_ratios
from benchmarks.run import FULL, QUICK
from benchmarks.series import Ratio, Series, parts
from benchmarks.systems import slug
from benchmarks.trials import MEASURES

TARGETS = {
    "redis_drain_vs_bullmq_node", "redis_drain_vs_pgqueuer", "redis_drain_vs_bullmq_py", "redis_drain_vs_celery",
    "redis_drain_vs_dramatiq", "redis_drain_vs_arq", "redis_drain_vs_rq", "redis_drain_vs_taskiq",
    "redis_drain_vs_saq", "redis_drain_vs_streaq", "redis_drain_vs_huey", "redis_cpu_vs_bullmq_node",
    "bytes_waiting_vs_bullmq", "round_trips_per_job_at_50", "sqlite_full_drain_vs_huey",
    "sqlite_normal_drain_vs_huey", "sqlite_drain_vs_dbos", "redis_bulk_add_vs_bullmq_node",
    "redis_concurrent_add_vs_best_peer", "pickup_redis_p50_vs_best_acking_peer",
    "pickup_redis_p99_vs_best_acking_peer", "pickup_sqlite_across_processes_p99_ms", "redis_drain_vs_limit",
    "sqlite_drain_vs_limit", "sqlite_full_drain_vs_limit", "redis_four_processes_vs_one",
    "sqlite_four_processes_vs_one",
}  # fmt: skip
NOT_IN_A_SHORT_RUN = {"bullmq_py", "celery", "dramatiq", "arq", "rq", "taskiq", "saq", "streaq", "dbos"}


def measured(sizes: Sizes) -> set[Series]:
    commands = {peer.environment.name: NotInstalled("a test") for peer in peers_of(sizes)}
    return {series for trial in all_trials(sizes, Path("limit.py"), commands) for series in trial.series}


def test_every_target_has_its_ratio() -> None:
    assert {ratio.name for ratio in all_ratios()} >= TARGETS


@pytest.mark.parametrize("ratio", all_ratios(), ids=lambda ratio: ratio.name)
def test_a_full_run_measures_what_it_compares(ratio: Ratio) -> None:
    assert {*parts(ratio.over), *parts(ratio.under)} <= measured(FULL)


@pytest.mark.parametrize("ratio", all_ratios(), ids=lambda ratio: ratio.name)
def test_a_short_run_measures_what_it_can(ratio: Ratio) -> None:
    """Of those that a ratio chooses the best of, some are enough."""
    if ratio.name.rpartition("_vs_")[2] in NOT_IN_A_SHORT_RUN:
        pytest.skip("the peer takes no part")
    for side in (ratio.over, ratio.under):
        assert side is None or set(parts(side)) & measured(QUICK)


@pytest.mark.parametrize("sizes", [FULL, QUICK], ids=["full", "quick"])
def test_what_has_a_target_is_measured_first(sizes: Sizes) -> None:
    trials, ratios = own_part(sizes)
    assert {ratio.name for ratio in ratios} == {"growth_work_max", "growth_time_max", "verdict_company_max_ms"}
    with_target = {series for ratio in ratios for series in parts(ratio.over)}
    first = [trial for trial in trials if with_target & set(trial.series)]
    assert with_target <= {series for trial in first for series in trial.series}
    assert trials[: len(first)] == first


def test_every_measure_has_its_place_in_the_report() -> None:
    assert {series.measure for series in measured(FULL)} <= set(MEASURES)


def test_a_system_is_asked_for_by_a_plain_name() -> None:
    assert slug("BullMQ, Node") == "bullmq_node"
