"""Several processes as one: their metrics in one text."""

from bullpen.telemetry.fleet import joined, socket_of

_OWN = "# HELP up Whether.\n# TYPE up gauge\nup 1\n"
_ONE = """\
# HELP jobs_total Jobs.
# TYPE jobs_total counter
jobs_total{queue="a b"} 2
# HELP ready R.
# TYPE ready gauge
ready 1
"""
_TWO = '# HELP jobs_total Jobs.\n# TYPE jobs_total counter\njobs_total{queue="a b"} 3\n'


def test_each_metric_is_told_once_with_the_process_as_a_label() -> None:
    assert joined(_OWN, {1: _ONE, 2: _TWO}).splitlines() == [
        "# HELP up Whether.",
        "# TYPE up gauge",
        "up 1",
        "# HELP jobs_total Jobs.",
        "# TYPE jobs_total counter",
        'jobs_total{process="1",queue="a b"} 2',
        'jobs_total{process="2",queue="a b"} 3',
        "# HELP ready R.",
        "# TYPE ready gauge",
        'ready{process="1"} 1',
    ]


def test_a_socket_has_a_short_name_however_long_the_workers_is() -> None:
    assert len(socket_of("/tmp/bullpen-abcdefgh", "host" * 60)) < 100
