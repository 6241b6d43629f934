"""What a store refuses, as the command line tells it."""

import pytest

from tests.cli.commands import Folder


@pytest.mark.parametrize(
    "words, error",
    [
        (["enqueue", "mail", "x", "--wait", "--within", "50ms"], "result-timeout"),
        (["jobs", "none"], "queue-missing"),
        (["events", "none"], "queue-missing"),
        (["resume", "none"], "queue-missing"),
        (["job", "mail", "99"], "job-missing"),
        (["retry", "mail", "next"], "wrong-state"),
        (["jobs", "mail", "--state", "failed", "--cursor", "odd"], "bad-option"),
        (["events", "mail", "--from", "odd"], "bad-option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_an_error_is_one_line_with_its_code(shop: Folder, words: list[str], error: str) -> None:
    answer = shop.bullpen(*words)
    assert answer.code == (2 if error == "bad-option" else 1), answer.err
    (line,) = answer.err.splitlines()
    assert line.startswith("bullpen: ")
    assert line.endswith(f"[{error}]")
