"""What a drain came to, in short."""

from bullpen.testing import Drained


def verdicts(report: Drained) -> list[type]:
    """The kind of each, in the order of the runs."""
    return [type(run.verdict) for run in report.runs]
