"""How late jobs are: with an idle worker, and under an open load at a share of the drain rate just measured."""

from pathlib import Path

from benchmarks.children import Answer, ask, child, module
from benchmarks.own.places import ALL, Place, Spot
from benchmarks.own.speeds import SYSTEM, drained, per_s, worker
from benchmarks.series import Series
from benchmarks.trials import Measured, Trial

_LOADS = {"at half load": 0.5, "at 80 % load": 0.8}
_WORDS = {"p50": "p50", "p99": "p99", "p100": "max"}
_ENDS = {"pickup": "pickup", "end_to_end": "end to end"}
_LONGEST_S = 600.0


def trials(*, quick: bool) -> list[Trial]:
    return [trial for place in ALL for trial in (_idle(place, quick=quick), _loaded(place, quick=quick))]


def _series(place: Place, load: str) -> dict[tuple[str, str], Series]:
    setting = f"{place.name}, {load}, producer and worker in two processes"
    return {
        (end, share): Series(SYSTEM, f"{name}, {word}", setting, "ms")
        for end, name in _ENDS.items()
        for share, word in _WORDS.items()
    }


def _found(series: dict[tuple[str, str], Series], answer: Answer) -> dict[Series, float]:
    return {one: answer[end][share] for (end, share), one in series.items()}


def _idle(place: Place, *, quick: bool) -> Trial:
    series = _series(place, "idle worker")
    samples = 200 if quick else 2_000

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot:
            answer, _ = await _loaded_with(spot, None, samples, warm_up=10)
        return _found(series, answer)

    return Trial([*series.values()], measure)


def _loaded(place: Place, *, quick: bool) -> Trial:
    """The drain rate is of a worker that has the machine for itself; a producer beside it takes its share of that."""
    by_load = {load: _series(place, load) for load in _LOADS}
    rates = {load: Series(SYSTEM, "offered load", f"{place.name}, {load}") for load in _LOADS}
    late = {load: Series(SYSTEM, "latest add", f"{place.name}, {load}", "ms late") for load in _LOADS}
    to_drain, seconds = (5_000, 2) if quick else (30_000, 10)

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot:
            answer, _ = await drained(spot, to_drain)
            rate = per_s(answer, to_drain)
            found: dict[Series, float] = {}
            for load, share in _LOADS.items():
                jobs = round(rate * share * seconds)
                answer, late_ms = await _loaded_with(spot, rate * share, jobs, warm_up=jobs // 10)
                found |= _found(by_load[load], answer) | {rates[load]: rate * share, late[load]: late_ms}
        return found

    series = [one for load in _LOADS for one in (rates[load], *by_load[load].values(), late[load])]
    return Trial(series, measure)


async def _loaded_with(spot: Spot, rate: float | None, jobs: int, *, warm_up: int) -> tuple[Answer, float]:
    """What the worker saw, and how late the producer was at its latest."""
    command = worker(spot.address, "--latencies", "--until", jobs + warm_up, "--warm-up", warm_up)
    async with child(*command, longest_s=_LONGEST_S) as working:
        await working.answer()  # ready
        producer = module("own.producing", spot.address, "in-time", "--jobs", jobs + warm_up)
        produced = await ask(*producer, *([] if rate is None else ["--rate", f"{rate:.1f}"]))
        return await working.answer(), produced["late_ms"]
