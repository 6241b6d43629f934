"""The jobs of the shop."""

from bullpen import Bullpen, Context, exponential

pen = Bullpen()
outbox: list[str] = []
"""Stands for the mail server."""


class MailServer:
    """Away, for as many calls as a test says."""

    away_for = 0


async def send(text: str) -> None:
    if MailServer.away_for > 0:
        MailServer.away_for -= 1
        raise ConnectionError("the mail server is away")
    outbox.append(text)


@pen.job(queue="mail", attempts=3, backoff=exponential(60))
async def confirm(ctx: Context, order_id: int, lang: str = "en") -> str:
    """Confirm an order, and ask for a review a week later."""
    ctx.log(f"attempt {ctx.attempt}")
    await send(f"order {order_id} confirmed ({lang})")
    ctx.then(ask_for_review.options(delay=7 * 86_400, tenant=ctx.tenant).prepare(order_id=order_id))
    return f"confirmed {order_id}"


@pen.job(queue="mail")
async def ask_for_review(ctx: Context, order_id: int) -> None:
    await send(f"how was order {order_id}?")


async def place_order(order_id: int, *, tenant: str) -> None:
    """What a web request does."""
    await confirm.options(tenant=tenant).add(order_id=order_id)
