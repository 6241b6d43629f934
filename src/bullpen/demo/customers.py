"""Those who add jobs to the shop's queues, and one who changes their mind."""

import asyncio
import itertools

from bullpen.demo.shop import TENANTS, Shop
from bullpen.errors import JobError

_NAMES = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Radia", "Ken")
_MONTHS = ("January", "February", "March", "April", "May", "June")
_ITEMS = ("lamp", "chair", "desk", "shelf", "rug")
_DIGEST_EVERY_S = 15


async def come_and_go(shop: Shop) -> None:
    """Add jobs of all kinds until cancelled."""
    await shop.pen.schedule("digest", shop.digest, every=_DIGEST_EVERY_S)
    await shop.pen.schedule("monthly", shop.report.prepare(month="last month"), cron="0 6 1 * *", tz="Europe/Vienna")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_sign_up(shop))
        tasks.create_task(_pay(shop))
        tasks.create_task(_upload(shop))
        tasks.create_task(_ask_for_reports(shop))
        tasks.create_task(_order(shop))


async def _sign_up(shop: Shop) -> None:
    for name, tenant in zip(itertools.cycle(_NAMES), itertools.cycle((*TENANTS, "acme")), strict=False):
        await shop.welcome.options(tenant=tenant, tags=["signup"]).add(to=name)
        await asyncio.sleep(0.4)


async def _pay(shop: Shop) -> None:
    for number in itertools.count(1):
        await asyncio.sleep(2)
        await shop.charge.options(tenant="acme").add(card=f"…{1000 + number}")
        await asyncio.sleep(6)


async def _upload(shop: Shop) -> None:
    for burst, tenant in enumerate(itertools.cycle(TENANTS)):
        pictures = range(30 * burst + 1, 30 * burst + 31)
        await asyncio.gather(*[shop.resize.options(tenant=tenant).add(picture=number) for number in pictures])
        await asyncio.sleep(8)


async def _ask_for_reports(shop: Shop) -> None:
    """Every second report is cancelled while it runs."""
    for n, month in enumerate(itertools.cycle(_MONTHS)):
        job = await shop.report.options(tenant=TENANTS[n % 2]).add(month=month)
        await asyncio.sleep(3)
        if n % 2 == 1:
            try:
                await job.cancel("the customer changed their mind")
            except JobError:
                pass  # it was done sooner
        await asyncio.sleep(3)


async def _order(shop: Shop) -> None:
    """Each order is a flow; now and then one waits for a person."""
    for order in itertools.count(1):
        items = [shop.pick.prepare(order=order, item=item) for item in _ITEMS[: 2 + order % 4]]
        await shop.pen.flow(shop.ship.prepare(order=order), [shop.pack.after(*items).prepare(order=order)])
        if order % 5 == 1:
            await shop.approve.options(tenant="globex", tags=["approval"]).add(order=order, amount=500 + 40 * order)
        await asyncio.sleep(7)
