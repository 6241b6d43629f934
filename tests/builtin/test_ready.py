"""`bullpen worker bullpen.builtin.ready:pen`: deliveries by a process that is no server."""

import asyncio
import os
import sys

import pytest

from bullpen.builtin.messages import trial
from bullpen.records.records import Records
from bullpen.records.webhooks import NewWebhook
from bullpen.stores.base import Store
from tests.builtin.receiver import Receiver
from tests.support.places import Place


@pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
async def test_a_worker_of_its_own_delivers(
    store: Store, place: Place, records: Records, address: str, receiver: Receiver
) -> None:
    webhook, secret = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    await store.add([trial(webhook, now_ms=1)], request="trial")
    command = [sys.executable, "-m", "bullpen.cli", "worker", "bullpen.builtin.ready:pen"]
    given = {"BULLPEN_STORE": place.address, "BULLPEN_RECORDS": address, "BULLPEN_OUTGOING_ALLOW": "127.0.0.1"}
    pipe = asyncio.subprocess.PIPE
    worker = await asyncio.create_subprocess_exec(*command, env=os.environ | given, stdout=pipe, stderr=pipe)
    try:
        (got,) = await receiver.until(1)
    finally:
        worker.terminate()
        said = b"".join(await worker.communicate())
    assert got.headers["x-bullpen-event"] == "test"
    assert worker.returncode == 0, said.decode()
    assert secret.encode() not in said
