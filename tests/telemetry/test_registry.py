"""The text that Prometheus reads, and the bounds that keep it small."""

import threading

from bullpen.telemetry.registry import Registry


def test_each_kind_as_prometheus_reads_it() -> None:
    registry = Registry()
    registry.counter("jobs_total", "Jobs.", ("queue",)).inc("mail", by=2)
    registry.gauge("up", "Whether.").set(1)
    took = registry.histogram("took_seconds", "Time.", ("queue",), buckets=(0.5, 2))
    for value in (0.25, 0.5, 1, 5):
        took.observe(value, "mail")
    assert registry.text().splitlines() == [
        "# HELP jobs_total Jobs.",
        "# TYPE jobs_total counter",
        'jobs_total{queue="mail"} 2',
        "# HELP up Whether.",
        "# TYPE up gauge",
        "up 1",
        "# HELP took_seconds Time.",
        "# TYPE took_seconds histogram",
        'took_seconds_bucket{queue="mail",le="0.5"} 2',
        'took_seconds_bucket{queue="mail",le="2"} 3',
        'took_seconds_bucket{queue="mail",le="+Inf"} 4',
        'took_seconds_sum{queue="mail"} 6.75',
        'took_seconds_count{queue="mail"} 4',
    ]


def test_what_was_never_set_is_not_shown() -> None:
    registry = Registry()
    registry.counter("jobs_total", "Jobs.")
    assert registry.text() == ""


def test_a_label_cannot_break_out_of_its_line() -> None:
    registry = Registry()
    registry.counter("jobs_total", "Jobs.", ("queue",)).inc('a"} 1\nb\\')
    assert registry.text().splitlines()[-1] == r'jobs_total{queue="a\"} 1\nb\\"} 1'


def test_series_that_are_too_many_are_one() -> None:
    """However many values a label gets, the text stays bounded, and nothing goes uncounted."""
    registry = Registry()
    counter = registry.counter("jobs_total", "Jobs.", ("queue",))
    for n in range(5_000):
        counter.inc(f"q{n}")
    lines = [line for line in registry.text().splitlines() if not line.startswith("#")]
    assert len(lines) == 1_001
    assert counter.value("other") == 4_000


def test_counts_from_several_threads_are_all_there() -> None:
    counter = Registry().counter("jobs_total", "Jobs.")

    def count() -> None:
        for _ in range(10_000):
            counter.inc()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value() == 40_000
