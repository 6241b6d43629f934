"""A job type for a process of its own, which must be able to import it."""

from bullpen import Bullpen, Context

pen = Bullpen("sqlite:never-opened.db")


@pen.job(queue="process", in_process=True)
def ask_for_a_step(ctx: Context) -> None:
    ctx.sync.step("charge", str)
