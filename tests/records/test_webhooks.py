"""Subscriptions: shown without their secret, apart for each tenant, told from when they are on."""

from typing import Any

import msgspec
import pytest

from bullpen import BadName, BadOption, EventKind, RecordMissing
from bullpen.records.records import Records
from bullpen.records.webhooks import NewWebhook
from bullpen.testing.clock import ManualClock

_URL = "https://example.com/hook"


async def test_the_secret_is_given_once_and_signs_later(records: Records) -> None:
    made, secret = await records.webhooks.create(NewWebhook(name="ops", url=_URL), created_by="ann")
    assert len(secret) >= 43
    assert await records.webhooks.secret(made.id) == secret
    assert await records.webhooks.get(made.id) == made
    assert secret not in repr(made) + repr(await records.webhooks.list())
    assert (made.kinds, made.queues) == ((EventKind.COMPLETED, EventKind.FAILED), None)
    renewed = await records.webhooks.renew_secret(made.id)
    assert renewed != secret
    assert await records.webhooks.secret(made.id) == renewed


async def test_it_is_listed_changed_and_removed_within_its_tenant(records: Records) -> None:
    webhooks = records.webhooks
    ours, _ = await webhooks.create(NewWebhook(name="b", url=_URL, tenant="acme", queues=["mail"]), created_by="ann")
    theirs, _ = await webhooks.create(NewWebhook(name="a", url=_URL, tenant="globex"), created_by="bob")
    assert [one.name for one in await webhooks.list()] == ["a", "b"]
    assert await webhooks.list(tenant="acme") == [ours]
    changed = await webhooks.change(ours.id, tenant="acme", name="c", queues=None, kinds=["stalled"], with_result=True)
    assert (changed.name, changed.queues, changed.kinds, changed.with_result) == ("c", None, ("stalled",), True)
    for wrong in (theirs.id, "0" * 32):
        for act in (
            webhooks.get(wrong, tenant="acme"),
            webhooks.change(wrong, tenant="acme", name="x"),
            webhooks.renew_secret(wrong, tenant="acme"),
            webhooks.remove(wrong, tenant="acme"),
        ):
            with pytest.raises(RecordMissing, match=f"no webhook '{wrong}'"):
                await act
    assert await webhooks.get(theirs.id) == theirs
    await webhooks.remove(ours.id, tenant="acme")
    assert await webhooks.list() == [theirs]
    with pytest.raises(RecordMissing):
        await webhooks.secret(ours.id)


async def test_what_happened_while_it_was_off_is_not_its_business(records: Records, clock: ManualClock) -> None:
    made, _ = await records.webhooks.create(NewWebhook(name="ops", url=_URL), created_by="ann")
    clock.advance(1_000)
    assert (await records.webhooks.change(made.id, is_enabled=True)).since_ms == made.since_ms, "it was on already"
    await records.webhooks.change(made.id, is_enabled=False)
    assert await records.webhooks.list(only_enabled=True) == []
    clock.advance(1_000)
    on = await records.webhooks.change(made.id, is_enabled=True)
    assert on.since_ms == made.since_ms + 2_000
    assert msgspec.structs.replace(on, since_ms=0, changed_ms=0) == msgspec.structs.replace(
        made, since_ms=0, changed_ms=0
    )


async def test_wrong_values_are_refused_by_name(records: Records) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"name": ""}, "name: "),
        ({"url": ""}, "url: "),
        ({"url": "https://e.com/" + "x" * 2_000}, "url: "),
        ({"queues": []}, "queues: "),
        ({"kinds": []}, "kinds: "),
        ({"kinds": ["finished"]}, "kinds: 'finished'"),
    ]
    made, _ = await records.webhooks.create(NewWebhook(name="ops", url=_URL), created_by="ann")
    for given, said in wrong:
        with pytest.raises(BadOption, match=said):
            NewWebhook(**{"name": "ops", "url": _URL, **given})
        with pytest.raises(BadOption, match=said):
            await records.webhooks.change(made.id, **given)
    with pytest.raises(BadName):
        NewWebhook(name="ops", url=_URL, queues=["a b"])
