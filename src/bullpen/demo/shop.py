"""The shop's job types, each of which shows one thing."""

import asyncio
import random

from bullpen.app import Bullpen
from bullpen.errors import Unrecoverable
from bullpen.job.options import exponential
from bullpen.stores.base import Store
from bullpen.worker.context import Context

MAIL, IMAGES, REPORTS = "demo-mail", "demo-images", "demo-reports"
QUEUES = (MAIL, IMAGES, REPORTS)


class Shop:
    """Its application, and the job types by name."""

    def __init__(self, store: Store) -> None:
        self.pen = Bullpen(store)
        self.welcome = self.pen.job(queue=MAIL, attempts=4, backoff=exponential(0.5, jitter=0.2))(welcome)
        self.charge = self.pen.job(queue=MAIL, attempts=3)(charge)
        self.resize = self.pen.job(queue=IMAGES)(resize)
        self.report = self.pen.job(queue=REPORTS)(report)


async def welcome(ctx: Context, to: str) -> str:
    """Fails now and then, and is tried again."""
    await _work(0.2, 0.5)
    if ctx.attempt == 1 and random.random() < 0.3:  # noqa: S311 - a demo
        raise ConnectionError("the mail server is away")
    return f"welcomed {to}"


async def charge(ctx: Context, card: str) -> None:  # noqa: ARG001 - a handler has one
    """Fails for good: no further attempt could help."""
    await _work(0.2, 0.4)
    raise Unrecoverable(f"card {card} was declined")


async def resize(ctx: Context, picture: int) -> str:  # noqa: ARG001
    """Comes in bursts, so that the queue fills and drains."""
    await _work(0.4, 0.8)
    return f"picture-{picture}-small.jpg"


async def report(ctx: Context, month: str) -> str:
    """Slow, and says how far it is."""
    for page in range(1, 11):
        await _work(0.4, 0.5)
        ctx.progress(page * 10)
        ctx.log(f"page {page} of {month} written")
    return f"report-{month}.pdf"


async def _work(shortest_s: float, longest_s: float) -> None:
    await asyncio.sleep(random.uniform(shortest_s, longest_s))  # noqa: S311 - a demo
