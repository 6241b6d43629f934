"""What the code that is not trusted is run with."""

from typing import Any

from bullpen.agents.sandbox import Outcome, Sandbox


async def shell(sandbox: Sandbox, line: str, **options: Any) -> Outcome:
    return await sandbox.run(["sh", "-c", line], **options)


async def python(sandbox: Sandbox, program: str, **options: Any) -> Outcome:
    return await sandbox.run(["python3", "-c", program], **options)
