"""Rows of the outbox that nobody sends, decided over HTTP."""

from sqlalchemy import insert

from bullpen.errors import JobMissing
from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.records import outbox
from bullpen.records.outbox_rows import FOREVER_MS
from bullpen.records.records import Records
from bullpen.records.tables.outbox import OutboxRow
from bullpen.server.site import Site
from tests.server.calling import Client, client_of, key_for
from tests.server.conftest import Eventually


async def give_problem(records: Records, job_id: str) -> None:
    """A row that a relay gave up."""
    row = outbox.row_of(NewJob("mail", "work", b"{}", id=job_id)) | {"held_until_ms": FOREVER_MS}
    async with records.database.writing() as connection:
        await connection.execute(insert(OutboxRow).values(**row, problem="in doubt"))


async def test_a_row_with_a_problem_is_shown_sent_or_dropped(
    site: Site, client: Client, eventually: Eventually
) -> None:
    """And the audit log tells which job that was."""
    for job_id in ("one", "two"):
        await give_problem(site.records, job_id)
    shown = await client.get("/v1/outbox")
    one, two = shown["items"]
    assert (shown["pending"], shown["problems"]) == (0, 2)
    assert [(row["job_id"], row["queue"], row["problem"]) for row in (one, two)] == [
        ("one", "mail", "in doubt"),
        ("two", "mail", "in doubt"),
    ]
    await client.post(f"/v1/outbox/{one['number']}/resend", status=204)
    await client.delete(f"/v1/outbox/{two['number']}", status=204)
    assert (await client.get("/v1/outbox"))["items"] == []

    async def is_sent() -> bool:
        try:
            return (await site.store.job(JobRef("mail", "one"))).name == "work"
        except JobMissing:
            return False

    await eventually(is_sent)
    decided = [entry for entry in (await client.get("/v1/audit"))["items"] if entry["action"].startswith("outbox.")]
    assert {(entry["action"], entry["details"]["job"]) for entry in decided} == {
        ("outbox.resend", "mail/one"),
        ("outbox.discard", "mail/two"),
    }


async def test_what_has_no_problem_is_not_decided(site: Site, client: Client) -> None:
    assert (await client.post("/v1/outbox/7/resend", status=404))["code"] == "record-missing"
    assert (await client.call("DELETE", "/v1/outbox/7", status=404))["code"] == "record-missing"


async def test_nobody_of_one_tenant_and_no_reviewer_may(site: Site) -> None:
    await give_problem(site.records, "one")
    for role, scope in (("admin", {"tenant": "acme"}), ("reviewer", {}), ("producer", {}), ("worker", {})):
        async with client_of(site, await key_for(site, role, **scope)) as caller:
            await caller.get("/v1/outbox", status=403)
            await caller.post("/v1/outbox/1/resend", status=403)
            await caller.call("DELETE", "/v1/outbox/1", status=403)
    assert len(await site.relay.problems()) == 1
