"""What a server tells operators of its records: the outbox and the read model."""

from sqlalchemy import insert

from bullpen.records.outbox_rows import FOREVER_MS
from bullpen.records.tables.outbox import OutboxRow
from bullpen.server.site import Site
from tests.server.calling import Client
from tests.server.conftest import Eventually
from tests.support.promtool import promtool


async def _put_row(site: Site, job_id: str, *, held_until_ms: int, age_ms: int = 0) -> None:
    """One that no relay takes for now."""
    row = {"job_id": job_id, "queue": "mail", "job": b"", "written_ms": site.clock.now_ms() - age_ms}
    async with site.records.database.writing() as connection:
        await connection.execute(insert(OutboxRow), row | {"held_until_ms": held_until_ms})


async def test_the_outbox_and_the_read_model_are_told(client: Client, site: Site, eventually: Eventually) -> None:
    await site.queue_to_fill("mail").add("work", tenant="acme")
    await _put_row(site, "a", held_until_ms=FOREVER_MS)
    await _put_row(site, "b", held_until_ms=site.clock.now_ms() + 3_600_000)
    await _put_row(site, "c", held_until_ms=site.clock.now_ms() + 3_600_000)
    told = ""

    async def is_told() -> bool:
        nonlocal told
        told = (await client.http.get("/metrics")).text
        return "\nbullpen_read_model_behind_seconds " in told

    await eventually(is_told)
    assert "\nbullpen_outbox_pending 2\n" in told
    assert "\nbullpen_outbox_problems 1\n" in told


async def test_jobs_that_were_added_over_http_are_told(client: Client) -> None:
    """By one, in bulk and as a flow; one that is refused is not."""
    await client.post("/v1/queues/mail/jobs", {"name": "work"}, status=201)
    await client.post("/v1/queues/mail/jobs", {"name": "work", "nothing": 1}, status=422)
    cut = {"name": "cut"}
    await client.post("/v1/queues/films/jobs/bulk", {"jobs": [cut, cut]}, status=201)
    flow = {"queue": "films", **cut, "children": [{"queue": "films", **cut}]}
    await client.post("/v1/flows", flow, status=201)
    told = (await client.http.get("/metrics")).text
    assert '\nbullpen_jobs_added_total{queue="mail",name="work"} 1\n' in told
    assert '\nbullpen_jobs_added_total{queue="films",name="cut"} 4\n' in told


async def test_promtool_finds_nothing_wrong_with_the_servers_metrics(client: Client, site: Site) -> None:
    await site.queue_to_fill("mail").add("work", tenant="acme")
    assert "bullpen_jobs_added_total" in (await client.http.get("/metrics")).text
    assert promtool("check", "metrics", given=(await client.http.get("/metrics")).text) == ""


async def test_an_outbox_that_is_stuck_is_not_well(client: Client, site: Site) -> None:
    async def checks() -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = (await client.http.get("/health")).json()["checks"]
        return found

    assert {name: (await checks())[name]["status"] for name in ("outbox", "read_model")} == {
        "outbox": "healthy",
        "read_model": "healthy",
    }
    await _put_row(site, "b", held_until_ms=site.clock.now_ms() + 3_600_000, age_ms=61_000)
    assert (await checks())["outbox"]["status"] == "degraded"
