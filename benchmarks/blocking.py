"""A handler that blocks, for a process of its own."""

import time

from bullpen import Context


def block(ctx: Context) -> None:
    ctx.log("started")
    time.sleep(600)
