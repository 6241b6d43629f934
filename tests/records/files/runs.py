"""A run with a task, as files need one."""

from bullpen.records.records import Records
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import TaskState


async def make_run(records: Records, run: str = "r1", task: str = "t1", tenant: str = "acme") -> None:
    """Which runs."""
    async with records.database.writing() as connection:
        runs = RunsOn(connection, records.database)
        await runs.create(run, tenant, created_by="ann")
        await runs.create_task(
            run, task, tenant=tenant, kind="agent_run", queue="agent-standard", prompt="go", terms=b""
        )
        await runs.move(task, TaskState.RUNNING)


async def end_run(records: Records, task: str = "t1") -> None:
    async with records.database.writing() as connection:
        await RunsOn(connection, records.database).move(task, TaskState.COMPLETED)


async def blobs_of(records: Records) -> set[str]:
    """The names of all that are there."""
    return {found.name async for found in records.files.blobs.all()}
