"""The shop's job types, each of which shows one thing."""

import asyncio
import random

from bullpen.app import Bullpen
from bullpen.errors import Unrecoverable
from bullpen.job.options import exponential
from bullpen.stores.base import Store
from bullpen.worker.context import Context

MAIL, IMAGES, REPORTS, ORDERS = "demo-mail", "demo-images", "demo-reports", "demo-orders"
QUEUES = (MAIL, IMAGES, REPORTS, ORDERS)
TENANTS = ("acme", "globex")
APPROVAL = "approval"
"""The signal that an order above the limit waits for."""


class Shop:
    """Its application, and the job types by name."""

    def __init__(self, store: Store) -> None:
        self.pen = Bullpen(store)
        self.welcome = self.pen.job(queue=MAIL, attempts=4, backoff=exponential(0.5, jitter=0.2))(welcome)
        self.charge = self.pen.job(queue=MAIL, attempts=3)(charge)
        self.resize = self.pen.job(queue=IMAGES, group="{tenant}")(resize)
        self.report = self.pen.job(queue=REPORTS)(report)
        self.digest = self.pen.job(queue=REPORTS)(digest)
        self.pick = self.pen.job(queue=ORDERS)(pick)
        self.pack = self.pen.job(queue=ORDERS)(pack)
        self.ship = self.pen.job(queue=ORDERS)(ship)
        self.approve = self.pen.job(queue=ORDERS)(approve)


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
    """Comes in bursts, so that the queue fills and drains; tenants take turns."""
    await _work(0.4, 0.8)
    return f"picture-{picture}-small.jpg"


async def report(ctx: Context, month: str) -> str:
    """Slow, and says how far it is."""
    for page in range(1, 11):
        await _work(0.4, 0.5)
        ctx.progress(page * 10)
        ctx.log(f"page {page} of {month} written")
    return f"report-{month}.pdf"


async def digest(ctx: Context) -> str:
    """Comes by schedule."""
    await _work(0.2, 0.4)
    ctx.log("the digest of the last seconds is sent")
    return "sent"


async def pick(ctx: Context, order: int, item: str) -> str:  # noqa: ARG001
    """A leaf of a flow."""
    await _work(0.3, 1.2)
    return f"{item} from shelf {order % 7}"


async def pack(ctx: Context, order: int) -> list[str]:
    """Runs when all items of its order are picked, and finds what they returned."""
    items = await ctx.child_results()
    await _work(0.3, 0.6)
    ctx.log(f"order {order}: {len(items)} items in one box")
    return sorted(map(str, items.values()))


async def ship(ctx: Context, order: int) -> str:
    """The root of a flow: runs last."""
    await _work(0.3, 0.6)
    ctx.log(f"order {order} is on its way")
    return f"parcel-{order}"


async def approve(ctx: Context, order: int, amount: int) -> str:
    """Does a step once, then waits for a person without holding a slot: send it the signal, and it goes on."""
    limit = await ctx.step("look up the limit", _limit)
    ctx.log(f"order {order} of {amount} is above the limit of {limit}: someone must approve it")
    answer = await ctx.wait_for(APPROVAL, timeout=600)
    booked: str = await ctx.step("book", _book, order, answer)
    return booked


async def _limit() -> int:
    await _work(0.2, 0.4)
    return 500


async def _book(order: int, answer: object) -> str:
    await _work(0.2, 0.4)
    return f"order {order}: {answer}"


async def _work(shortest_s: float, longest_s: float) -> None:
    await asyncio.sleep(random.uniform(shortest_s, longest_s))  # noqa: S311 - a demo
