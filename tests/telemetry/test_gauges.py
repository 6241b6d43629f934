"""What is looked up when someone asks, within its bounds."""

from bullpen.stores.base import Counts
from bullpen.telemetry.checks import Look, QueueLook
from bullpen.telemetry.gauges import MAX_QUEUES, StoreGauges
from bullpen.telemetry.registry import Registry


def _text(queues: dict[str, QueueLook]) -> list[str]:
    registry = Registry()
    StoreGauges(registry).show(Look(queues))
    return registry.text().splitlines()


def test_each_queue_stands_by_itself_as_long_as_they_are_few() -> None:
    queues = {f"q{n:03}": QueueLook(Counts(failed=n), n * 1_000) for n in range(MAX_QUEUES)}
    lines = _text(queues)
    assert f'bullpen_queue_jobs{{queue="q{MAX_QUEUES - 1}",state="failed"}} {MAX_QUEUES - 1}' in lines
    assert "bullpen_queues_left_out 0" in lines


def test_queues_that_are_too_many_are_told_together() -> None:
    """Nothing of them is lost: jobs are summed, of waits it is the longest, and how many they are is told."""
    queues = {f"q{n:03}": QueueLook(Counts(waiting=1), 1_000) for n in range(MAX_QUEUES - 1)}
    queues |= {
        "x": QueueLook(Counts(failed=2, completed=5), 9_000),
        "y": QueueLook(Counts(failed=3, waiting_children=1, paused=True), None),
        "other": QueueLook(Counts(failed=4), 2_000),
    }
    lines = _text(queues)
    jobs = [line for line in lines if line.startswith("bullpen_queue_jobs{")]
    assert len(jobs) == MAX_QUEUES * 7 <= 1_000
    assert {line.partition("state=")[2] for line in jobs if '"other"' in line} == {
        '"waiting"} 0',
        '"prioritized"} 0',
        '"delayed"} 0',
        '"active"} 0',
        '"waiting-children"} 1',
        '"completed"} 5',
        '"failed"} 9',
    }
    assert 'bullpen_queue_oldest_waiting_seconds{queue="other"} 9' in lines
    assert 'bullpen_queue_paused{queue="other"} 1' in lines
    assert "bullpen_queues_left_out 2" in lines, "one that is itself named other is not left out"
