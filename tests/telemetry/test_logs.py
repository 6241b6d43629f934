"""Lines of JSON with the ids of the job at work, and without its payload."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from bullpen import Context
from bullpen.telemetry.logs import JobIds, JsonFormatter
from tests.telemetry.conftest import MakePen, Work


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, root = Kept(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


async def test_every_line_of_a_handler_has_the_ids_of_its_job(make_pen: MakePen, work: Work, kept: Kept) -> None:
    """Also what a library logs, and what is logged in a thread."""
    pen = make_pen(JobIds())

    @pen.job(queue="mail")
    def welcome(ctx: Context, secret: str) -> None:
        logging.getLogger("some.library").info("called %s", "it", extra={"took_ms": 3})
        ctx.logger.info("sent")

    work(pen)
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    options = welcome.options(tenant="acme", workspace="eu", headers={"traceparent": trace})
    job = await options.add(secret="hunter2")
    await job.result(timeout=60)
    library, own = [line for line in kept.lines if line["logger"] in ("some.library", "bullpen.job")]
    ids = {"queue": "mail", "job_id": job.id, "job_name": "welcome", "tenant": "acme", "workspace": "eu"}
    for line in (library, own):
        assert ids.items() <= line.items()
        assert line["attempt"] == 1
        assert line["trace_id"] == "a" * 32
    assert library["message"] == "called it"
    assert library["took_ms"] == 3
    assert library["level"] == "info"
    assert all("hunter2" not in json.dumps(line) for line in kept.lines)


def test_an_error_is_one_line_with_its_stack() -> None:
    text = ""
    try:
        int("no")
    except ValueError:
        record = logging.LogRecord("shop", logging.ERROR, "shop.py", 1, "it failed", (), sys.exc_info())
        text = JsonFormatter().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert line["error"] == "ValueError"
    assert "Traceback" in line["stack"]
    assert line["time"].endswith("+00:00")
