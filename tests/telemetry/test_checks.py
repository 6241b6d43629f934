"""From what the store says to healthy, degraded or unhealthy."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from bullpen import SqliteStore
from bullpen.errors import BadOption
from bullpen.stores.base import Counts, WorkerInfo, WorkerState
from bullpen.telemetry.checks import HealthOptions, Look, QueueLook, Status, judge, look_at

_WORKER = WorkerInfo(name="w", state=WorkerState.READY, queues={"mail": 1})


def _look(
    *, failed: int = 0, oldest_ms: int | None = None, workers: int = 1, took_ms: int = 1, paused: bool = False
) -> Look:
    queue = QueueLook(Counts(failed=failed, paused=paused), oldest_ms)
    return Look({"mail": queue}, (_WORKER,) * workers, took_ms)


@pytest.mark.parametrize(
    "look, check, status",
    [
        (_look(), "dead_letters", Status.HEALTHY),
        (_look(failed=1), "dead_letters", Status.DEGRADED),
        (_look(failed=99), "dead_letters", Status.DEGRADED),
        (_look(failed=100), "dead_letters", Status.UNHEALTHY),
        (_look(oldest_ms=300_000), "queues", Status.HEALTHY),
        (_look(oldest_ms=300_001), "queues", Status.DEGRADED),
        (_look(oldest_ms=3_600_001), "queues", Status.UNHEALTHY),
        (_look(oldest_ms=3_600_001, paused=True), "queues", Status.HEALTHY),
        (_look(workers=0), "workers", Status.UNHEALTHY),
        (_look(took_ms=101), "store", Status.DEGRADED),
        (Look(error="StoreUnavailable: away"), "store", Status.UNHEALTHY),
    ],
)
def test_each_check_and_the_worst_of_them(look: Look, check: str, status: Status) -> None:
    health = judge(look, HealthOptions())
    assert health.checks[check].status == status
    assert health.status == status


def test_the_thresholds_can_be_set() -> None:
    options = HealthOptions(dead_letters_degraded=10, dead_letters_unhealthy=20, min_workers=3)
    assert judge(_look(failed=10, workers=3), options).status == Status.HEALTHY
    assert judge(_look(failed=11, workers=3), options).status == Status.DEGRADED
    assert judge(_look(failed=20, workers=3), options).status == Status.UNHEALTHY
    assert judge(_look(workers=2), options).checks["workers"].status == Status.DEGRADED


async def test_a_store_that_hangs_is_an_answer_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Hanging(SqliteStore):
        async def workers(self) -> Sequence[WorkerInfo]:
            await asyncio.Event().wait()
            return ()

    monkeypatch.setattr("bullpen.telemetry.checks.LOOK_S", 0.01)
    store = Hanging(tmp_path / "queue.db")
    look = await look_at(store, ["mail"])
    await store.close()
    assert look.error == "no answer within 0.01 s"
    assert judge(look, HealthOptions()).status == Status.UNHEALTHY


@pytest.mark.parametrize("field", ["dead_letters_degraded", "min_workers", "store_slow", "live_within"])
def test_a_wrong_threshold_is_refused(field: str) -> None:
    with pytest.raises(BadOption, match=field):
        HealthOptions(**{field: -1})


def test_thresholds_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HEALTH_DEAD_LETTERS_DEGRADED", "10")
    monkeypatch.setenv("BULLPEN_HEALTH_DEAD_LETTERS_UNHEALTHY", "500")
    monkeypatch.setenv("BULLPEN_HEALTH_STORE_SLOW", "0.5")
    found = HealthOptions.from_environment()
    assert found == HealthOptions(dead_letters_degraded=10, dead_letters_unhealthy=500, store_slow=0.5)


@pytest.mark.parametrize(
    "name, text", [("MIN_WORKERS", "1.5"), ("DEAD_LETTERS_DEGRADED", "-1"), ("STORE_SLOW", "soon")]
)
def test_a_threshold_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(f"BULLPEN_HEALTH_{name}", text)
    with pytest.raises(BadOption, match=f"BULLPEN_HEALTH_{name}"):
        HealthOptions.from_environment()
