"""Handlers and factories that other processes import by name."""

import os
import signal
import time

from bullpen import Context


def describe(ctx: Context) -> dict[str, int]:
    ctx.log("hello from the other process")
    ctx.progress({"done": 1})
    return {"n": ctx.data["n"], "pid": os.getpid()}


def fail(ctx: Context) -> None:
    raise LookupError("no such luck")


def die(ctx: Context) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def block(ctx: Context) -> None:
    ctx.log("blocking")
    time.sleep(600)
