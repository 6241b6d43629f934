"""Mistakes as users make them: each line marked with `error` is found by every type checker, and no other is.

See `test_typing.py`. This file is never run.
"""

# pyright: strict

from bullpen import Bullpen, Context, Job, Queue, agents
from bullpen.testing import run_until_empty, test_context

pen = Bullpen()


@pen.job(queue="mail", attempts=5)
async def welcome(ctx: Context, user_id: int, lang: str = "en") -> str:
    return f"{ctx.id} {user_id} {lang}"


@pen.job
def count(ctx: Context, n: int) -> list[int]:
    return [n]


async def wrong_arguments() -> None:
    await welcome.add("42")  # error: a text for a number
    await welcome.add(user_id="42")  # error: the same by name
    await welcome.add()  # error: one is missing
    await welcome.add(42, "de", "more")  # error: one too many
    await welcome.add(user_id=42, language="de")  # error: no such argument
    await welcome.add(42, delay=5)  # error: options stand apart
    await welcome.options(delay=5).add("42")  # error: a text for a number
    await welcome.options(delay=5).add(lang="de")  # error: one is missing
    await count.add(n=1.5)  # error: not a whole number
    welcome.prepare("42")  # error: a text for a number
    count.options(delay=5).prepare()  # error: one is missing


async def wrong_results() -> None:
    job = await welcome.add(42)
    number: int = await job.result()  # error: it is a text
    texts: list[str] = await (await count.add(1)).result()  # error: it is numbers
    other: Job[int] = job  # error: a job of another result
    found: Job[int] = welcome.job("1")  # error: the same of a job that was looked up
    print(number, texts, other, found)


async def wrong_options() -> None:
    welcome.options(dealy=5)  # error: no such option
    welcome.options(delay="5")  # error: not a time
    welcome.options(attempts="3")  # error: not a number
    welcome.options(tags="new")  # error: a text is no list of texts
    welcome.options(user_id=42)  # error: arguments stand apart
    await pen.queue("mail").add("welcome", {}, dealy=5)  # error: no such option
    await Queue(pen.store, "mail").add("welcome", {}, priority="high")  # error: not a number


@pen.job(queue="mail", atempts=5)  # error: no such option
async def misspelt(ctx: Context) -> None: ...


@pen.job(queue=5)  # error: a queue's name is a text
async def numbered(ctx: Context) -> None: ...


@pen.job()  # error: the first parameter is the context
async def no_context(user_id: int) -> None: ...


async def wrong_calls() -> None:
    await welcome(test_context(), user_id="42")  # error: a text for a number
    await welcome(user_id=42)  # error: no context
    count(test_context(), 1).add()  # error: a list has no add
    text: str = count(test_context(), 1)  # error: it is numbers
    print(text)
    test_context(atempt=2)  # error: no such argument
    await run_until_empty(pen, clock=5)  # error: not a clock
    agents.Agent(pen)  # error: it is called Agents
