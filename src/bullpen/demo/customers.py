"""Those who add jobs to the shop's queues, and one who changes their mind."""

import asyncio
import itertools

from bullpen.demo.shop import Shop
from bullpen.errors import JobError

_NAMES = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Radia", "Ken")
_MONTHS = ("January", "February", "March", "April", "May", "June")


async def come_and_go(shop: Shop) -> None:
    """Add jobs of all kinds until cancelled."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_sign_up(shop))
        tasks.create_task(_pay(shop))
        tasks.create_task(_upload(shop))
        tasks.create_task(_ask_for_reports(shop))


async def _sign_up(shop: Shop) -> None:
    for name in itertools.cycle(_NAMES):
        await shop.welcome.options(tenant="acme").add(to=name)
        await asyncio.sleep(0.4)


async def _pay(shop: Shop) -> None:
    for number in itertools.count(1):
        await asyncio.sleep(2)
        await shop.charge.options(tenant="acme").add(card=f"…{1000 + number}")
        await asyncio.sleep(6)


async def _upload(shop: Shop) -> None:
    for burst in itertools.count():
        await asyncio.gather(*[shop.resize.add(picture=30 * burst + n) for n in range(1, 31)])
        await asyncio.sleep(8)


async def _ask_for_reports(shop: Shop) -> None:
    """Every second report is cancelled while it runs."""
    for n, month in enumerate(itertools.cycle(_MONTHS)):
        job = await shop.report.add(month=month)
        await asyncio.sleep(3)
        if n % 2 == 1:
            try:
                await job.cancel("the customer changed their mind")
            except JobError:
                pass  # it was done sooner
        await asyncio.sleep(3)
