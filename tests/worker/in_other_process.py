"""Handlers and factories that other processes import by name."""

import multiprocessing
import os
import signal
import subprocess
import time

from bullpen import Context, NewJob


def misbehave(ctx: Context) -> object:
    match ctx.data:
        case "endless progress":
            ctx.progress(float("nan"))
        case "huge progress":
            ctx.progress("x" * 300_000)
        case "bad follow-up":
            ctx.then(NewJob("work", 5))  # type: ignore[arg-type]  # that is what is bad about it
            time.sleep(600)
        case "no result":
            return object()
        case "no unicode":
            ctx.log("line \udcff")
            return "\udcff"
        case "error that is no unicode":
            raise LookupError("no file \udcff")
        case "huge code":
            raise CodedError
        case {"eat_mb": mb}:
            eaten.append(bytearray(mb * 1_048_576))
    return os.getpid()


class CodedError(Exception):
    code = 2**70

    def __str__(self) -> str:
        raise RuntimeError("no words")


eaten: list[bytearray] = []


def describe(ctx: Context) -> dict[str, int]:
    ctx.log("hello from the other process")
    ctx.progress({"done": 1})
    return {"n": ctx.data["n"], "pid": os.getpid()}


def fail(ctx: Context) -> None:
    raise LookupError("no such luck")


def die(ctx: Context) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def work_until(ctx: Context) -> int:
    """Works until the file that it was given appears, and has a pool of processes that it ends."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(os.getpid)
        ctx.log(str(os.getpid()))
        while not os.path.exists(ctx.data):  # noqa: PTH110
            time.sleep(0.01)
    return os.getpid()


def call_a_program(ctx: Context) -> None:
    program = subprocess.Popen(["sleep", "1000"])
    ctx.log(str(program.pid))
    if ctx.data == "and die":
        os.kill(os.getpid(), signal.SIGKILL)
    program.wait()


def block(ctx: Context) -> None:
    ctx.log("blocking")
    time.sleep(600)
