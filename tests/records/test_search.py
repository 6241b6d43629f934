"""Search: what is found, in which order, page by page."""

from typing import Any

import pytest

from bullpen import Failure, Queue
from bullpen.job.verdicts import Failed, Settlement
from bullpen.records.model import searching, texts
from bullpen.records.model.searching import JobFilter
from bullpen.records.model.words import words_of
from bullpen.records.records import Records
from bullpen.stores.base import Store


@pytest.mark.parametrize("few", [0, 2_000])
async def test_search_within_queue_state_and_tenant(
    few: int, records: Records, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the words of the index, and by reading the few jobs of a state: both find the same."""
    monkeypatch.setattr(searching, "_FEW", few)
    feeder = records.feeder(store)
    for n in range(8):
        tenant = ("acme", "other")[n % 2]
        await Queue(store, ("mail", "post")[n // 4], clock=store.clock).add("sending", id=f"job-{n}", tenant=tenant)
    claimed = await store.claim({"mail": 2}, worker="w", lease_ms=60_000, request="claim")
    failed = Failed(Failure("no such host"))
    await store.settle([Settlement(job.lease, failed) for job in claimed.jobs], request="settle")
    await feeder.catch_up()

    async def ids(**wanted: Any) -> list[str]:
        return [job.id for job in (await records.jobs.list(JobFilter(**wanted))).jobs]

    assert sorted(await ids(text="send", queue="mail")) == [f"job-{n}" for n in range(4)]
    assert await ids(text="send host", states=["failed"]) == await ids(text="job", states=["failed"])
    assert sorted(await ids(text="host")) == sorted(await ids(text="send", states=["failed"])) == ["job-0", "job-1"]
    assert await ids(text="send", states=["failed"], tenant="acme", queue="mail") == ["job-0"]
    assert await ids(text="send", states=["failed"], queue="post") == []
    assert sorted(await ids(text="send", states=["waiting"], tenant="acme")) == ["job-2", "job-4", "job-6"]
    assert await ids(text="nowhere", states=["waiting"]) == await ids(text="host", states=["waiting"]) == []
    await Queue(store, "mail", clock=store.clock).retry_all()
    await feeder.catch_up()
    assert await ids(text="send", states=["failed"]) == []
    assert {"job-0", "job-1"} <= set(await ids(text="send", states=["waiting"]))


@pytest.mark.parametrize("name", ["4e4a81bf62bf", "1e5", "0x1f", "3rd", "12ab", "v2", "٣", "日本"])
async def test_a_word_is_found_whatever_it_begins_with(records: Records, store: Store, name: str) -> None:
    """What looks like a number to a database is not taken apart by it."""
    feeder = records.feeder(store)
    for job_id in (f"job-{name}", "job-else"):
        await Queue(store, "mail", clock=store.clock).add("sending", id=job_id)
    await feeder.catch_up()
    for text in (name, f"job-{name}", name[:-1] or name, f"send {name}"):
        assert [job.id for job in (await records.jobs.search(text)).jobs] == [f"job-{name}"], text


@pytest.mark.parametrize("few", [0, 2_000])
@pytest.mark.parametrize(
    "wanted",
    [
        JobFilter(text="typ"),
        JobFilter(text="typewriters 1"),
        JobFilter(text="typewriter", tenant="acme"),
        JobFilter(text="type", queue="mail", states=["waiting"]),
        JobFilter(text="typewriters", states=["waiting"], tag="even"),
    ],
    ids=lambda wanted: f"{wanted.text}",
)
async def test_pages_of_a_search_have_each_job_once_and_the_newest_first(
    wanted: JobFilter,
    few: int,
    records: Records,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever way its jobs are found, and however long its words are."""
    monkeypatch.setattr(searching, "_FEW", few)
    monkeypatch.setattr(texts, "_NEWEST", 5)
    monkeypatch.setattr(texts, "_NEWEST_VECTORS", 5)
    queue, feeder = Queue(store, "mail", clock=store.clock), records.feeder(store)
    names = ("typewriters", "typewriting", "types")
    for n in range(40):
        tag, tenant = ("even", "odd")[n % 2], ("acme", "other")[n % 4 // 2]
        await queue.add(names[n % 3], id=f"job-{n}", tenant=tenant, tags=[tag])
    await feeder.catch_up()
    words = words_of([wanted.text or ""])
    expected = [
        f"job-{n}"
        for n in reversed(range(40))
        if all(any(own.startswith(word) for own in (names[n % 3], f"{n}")) for word in words)
        and (wanted.tag is None or n % 2 == 0)
        and (wanted.tenant is None or n % 4 // 2 == 0)
    ]
    assert len(expected) > 2
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await records.jobs.list(wanted, limit=2, cursor=cursor)
        found += [job.id for job in page.jobs]
        if (cursor := page.next_cursor) is None:
            break
    assert found == expected
