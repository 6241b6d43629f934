"""Two tenants on one server, each with some of everything; all that is beta's has a mark in it."""

from typing import Any

import msgspec
from fastapi import FastAPI
from sqlalchemy import insert

from bullpen import Failure
from bullpen.agents.words import TaskRequest
from bullpen.builtin.messages import trial
from bullpen.job.entries import JournalEntry
from bullpen.job.limits import GroupLimits
from bullpen.job.record import JobRef, Lease
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Failed, Settlement
from bullpen.records import outbox
from bullpen.records.credits.words import Period
from bullpen.records.keys import NewKey
from bullpen.records.outbox_rows import FOREVER_MS
from bullpen.records.tables.outbox import OutboxRow
from bullpen.records.tenants import Plan
from bullpen.records.webhooks import NewWebhook
from bullpen.remote.messages import HeldLease
from bullpen.server.app import create_app
from bullpen.server.site import Site

MARK = "beta"
"""In all that tenant alpha must never see."""


class World:
    """What was made, by the names of the routes' path parameters; ids that a caller sends have no mark in them."""

    def __init__(self, site: Site, app: FastAPI) -> None:
        self.site = site
        self.app = app
        self.theirs: dict[str, str] = {"queue": "mail", "job_id": "their-job", "schedule": "their-schedule"}
        self.held = JobRef("remote", "their-held")
        """A job of theirs that somebody works on; `lease` is the right to do that, as JSON."""
        self.nobodys = {
            "queue": "mail",
            "job_id": "no-such-job",
            "schedule": "no-such-plan",
            "group": "no-such-group",
            "tenant_id": "no-such-tenant",
            "key_id": "0" * 32,
            "user_id": "0" * 32,
            "alert_id": "0" * 32,
            "webhook_id": "0" * 32,
            "run_id": "run_00000000000000000000",
            "task_id": "task_00000000000000000000",
            "file_id": "file_00000000000000000000",
            "period": "month",
            "name": "no-such-view",
            "number": "999999",
            "lease": _lease_text(Lease(JobRef("remote", "no-such-job"), "token", 1)),
        }

    async def fingerprint(self) -> str:
        """All of beta's, as it stands: nothing that alpha does may change it."""
        store, records = self.site.store, self.site.records
        ref = JobRef("mail", self.theirs["job_id"])
        found = [
            await store.job(ref),
            await store.logs(ref),
            await store.read_journal(ref),
            await store.job(JobRef("mail", "their-child")),
            await store.counts("beta-only"),
            await store.job(self.held),
            await store.logs(self.held),
            await store.read_journal(self.held),
            await store.counts("remote"),
            await store.schedule("mail", self.theirs["schedule"]),
            await store.group("mail", "beta"),
            await store.limits("mail"),
            await records.keys.get(self.theirs["key_id"]),
            await records.users.list(tenant="beta"),
            await records.tenants.list(),
            await records.views.list("user:beta-bob", tenant="beta"),
            await records.alerts.list(tenant="beta"),
            await records.webhooks.list(tenant="beta"),
            await records.webhooks.secret(self.theirs["webhook_id"]),
            (await store.counts("mail")).paused,
            await records.runs.get(self.theirs["run_id"]),
            await records.runs.tasks(self.theirs["run_id"]),
            [run.id for run in (await records.runs.page(tenant="beta")).runs],
            await records.credits.accounts("beta"),
            await records.credits.budgets_of("beta"),
            await records.files.read(self.theirs["file_id"]),
            (await records.files.page(tenant="beta")).files,
            await self.site.relay.problems(),
        ]
        return msgspec.json.encode(found).decode()


def _lease_text(lease: Lease) -> str:
    return msgspec.json.encode(HeldLease.of(lease)).decode()


async def make_world(site: Site) -> World:
    world = World(site, create_app(site=site, settings=site.settings))
    await _make_jobs(site, world)
    await _make_records(site, world)
    await _make_run(site, world)
    return world


async def _make_run(site: Site, world: World) -> None:
    await site.agents.deposit("beta", 100)
    world.theirs["period"] = (await site.records.credits.set_budget("beta", Period.TOTAL, 77_000_000)).period
    asked = TaskRequest(
        prompt="beta-prompt", workspace="beta-team", system="beta-system", model="gpt-4o", metadata={"of": "beta"}
    )
    sent = await site.agents.submit(asked, tenant="beta", created_by="user:beta-bob")
    made = await site.records.files.keep_artifact(
        sent.task_id, "beta-call", "beta.txt", b"beta-bytes", mime="text/plain"
    )
    world.theirs |= {"run_id": sent.run_id, "task_id": sent.task_id, "file_id": made.id}


async def _make_jobs(site: Site, world: World) -> None:
    queue, store = site.queue("mail"), site.store
    options: dict[str, Any] = {"tenant": "beta", "workspace": "beta-team", "tags": ["beta-tag"], "group": "beta"}
    child = queue.prepare("beta-child", {"of": "beta"}, id="their-child", **options)
    job = queue.prepare("beta-work", {"secret": "beta-secret"}, id="their-job", **options)
    await queue.add_prepared(msgspec.structs.replace(job, children=(child,)))
    claimed = await store.claim({"mail": 1}, worker="beta-worker", lease_ms=60_000, request="one")
    (held,) = claimed.jobs
    await store.append_journal(held.lease.ref, [JournalEntry(0, "beta-step", value=b'"beta"')], epoch=held.lease.epoch)
    await store.add_log(held.lease.ref, ["beta-log"])
    failure = Failure("beta-error", type="BetaError", stack="beta-stack")
    await store.settle([Settlement(held.lease, Failed(failure))], request="two")
    await site.queue("beta-only").add("beta-work", tenant="beta")
    await site.queue("remote").add("beta-work", id=world.held.id, tenant="beta", group="beta")
    (held,) = (await store.claim({"remote": 1}, worker="w", lease_ms=3_600_000, request="three")).jobs
    world.theirs["lease"] = _lease_text(held.lease)
    await site.queue("remote").add("beta-work", id="their-waiting", tenant="beta", group="beta")
    await site.queue("mail").schedules.upsert("their-schedule", queue.prepare("beta-tick", tenant="beta"), every=3600)
    await queue.add("alpha-work", {"n": 1}, id="own-job", tenant="alpha", group="alpha")
    await store.set_group("mail", "beta", GroupLimits(concurrency=77))


async def _make_records(site: Site, world: World) -> None:
    records = site.records
    for tenant in ("alpha", "beta"):
        await records.tenants.create(tenant, name=f"the {tenant}", plan=Plan(default_priority=6))
    key, _ = await records.keys.create(NewKey(name="beta-key", role="admin", tenant="beta"), created_by="user:beta-bob")
    user = await records.users.create("beta-bob", "a long password", role="admin", tenant="beta")
    await records.views.save(
        "user:beta-bob", "beta-view", page="jobs", query={"q": "beta"}, tenant="beta", is_shared=True
    )
    alert = await records.alerts.save("beta-alert", condition={"on": "beta"}, channel={"to": "beta"}, tenant="beta")
    webhook, _ = await records.webhooks.create(
        NewWebhook(name="beta-hook", url="http://127.0.0.1:1/beta", tenant="beta"), created_by="user:beta-bob"
    )
    await site.store.add([trial(webhook, now_ms=1)], request="trial")
    await records.audit.note("user:beta-bob", "job.retry", "mail/beta", tenant="beta")
    async with records.database.writing() as connection:
        row = outbox.row_of(NewJob("mail", "beta-work", b"{}", id="beta-row")) | {"held_until_ms": FOREVER_MS}
        await connection.execute(insert(OutboxRow).values(**row, problem="beta-problem"))
    (problem,) = await site.relay.problems()
    world.theirs |= {
        "number": str(problem.number),
        "group": "beta",
        "tenant_id": "beta",
        "key_id": key.id,
        "user_id": user.id,
        "alert_id": alert.id,
        "webhook_id": webhook.id,
        "name": "beta-view",
    }
