"""A job type that another process can import."""

import os

from bullpen import Bullpen, Context

OUR_PROCESS = os.getpid()
pen = Bullpen("sqlite:never-opened.db")


@pen.job(in_process=True)
def process_id(ctx: Context) -> int:
    return os.getpid()
