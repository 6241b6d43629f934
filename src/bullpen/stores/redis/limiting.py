"""Limits of a queue and of its groups."""

from collections.abc import Sequence

from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.stores.redis import scripts
from bullpen.stores.redis.codec import FIELDS
from bullpen.stores.redis.site import MISSING, Site
from bullpen.stores.redis.steering import queue_missing

_Row = Sequence[bytes | int | Sequence[bytes]]
"""A group as the scripts tell it."""
_LIMITS = ("weight", "concurrency", "rate_max", "rate_ms", "max_size")
"""The fields of a group's limits, as the scripts order them."""


async def set_limits(site: Site, queue: str, limits: QueueLimits) -> None:
    said = (limits.concurrency, limits.rate_max, limits.rate_ms)
    await site.ask(scripts.SET_LIMITS, queue, site.now, *("" if one is None else str(one) for one in said))


async def limits(site: Site, queue: str) -> QueueStanding:
    found = await site.ask(scripts.LIMITS, queue, site.now)
    if found == MISSING:
        raise queue_missing(queue)
    concurrency, rate_max, rate_ms, closed_until_ms = (_number(one) for one in found)
    return QueueStanding(
        QueueLimits(concurrency=concurrency, rate_max=rate_max, rate_ms=rate_ms),
        closed_until_ms,
    )


async def close_for(site: Site, queue: str, delay_ms: int) -> None:
    await site.ask(scripts.CLOSE, queue, site.now, str(delay_ms))


async def set_group(site: Site, queue: str, group: str, limits: GroupLimits | None) -> None:
    await site.ask(scripts.SET_GROUP, queue, group, *_words(limits or GroupLimits()))


async def set_group_default(site: Site, queue: str, limits: GroupLimits) -> None:
    after = "first"
    while True:
        last = await site.ask(scripts.SET_GROUP_DEFAULT, queue, after, *_words(limits))
        if not last:
            return
        after = f"({last.decode()}"


async def pause_group(site: Site, queue: str, group: str, *, paused: bool) -> None:
    if await site.ask(scripts.PAUSE_GROUP, queue, group, "paused" if paused else "") == MISSING:
        raise queue_missing(queue)


async def group(site: Site, queue: str, name: str) -> GroupInfo:
    _, rows = await _listed(site, queue, 1, f"[{name}", f"[{name}")
    return _info(rows[0]) if rows else GroupInfo(name=name)


async def groups(site: Site, queue: str, limit: int, cursor: str | None) -> GroupPage:
    default, rows = await _listed(site, queue, limit + 1, f"({cursor}" if cursor else "-", "+")
    page = tuple(_info(row) for row in rows[:limit])
    return GroupPage(page, _limits(default), page[-1].name if len(rows) > limit else None)


async def _listed(site: Site, queue: str, limit: int, first: str, last: str) -> tuple[Sequence[bytes], list[_Row]]:
    found = await site.ask(scripts.LIST_GROUPS, queue, site.now, str(limit), first, last)
    if found == MISSING:
        raise queue_missing(queue)
    default, *rows = found
    return default, rows


def _info(row: _Row) -> GroupInfo:
    name, waiting, active, paused, closed_until_ms, oldest_ms, said = row
    assert isinstance(name, bytes)
    assert isinstance(said, list)
    return GroupInfo(
        name=name.decode(),
        waiting=_number(waiting) or 0,
        active=_number(active) or 0,
        paused=bool(paused),
        closed_until_ms=_number(closed_until_ms),
        oldest_ms=_number(oldest_ms),
        limits=_limits(said),
    )


def _limits(said: Sequence[bytes]) -> GroupLimits:
    return GroupLimits(**{word: _number(value) for word, value in zip(_LIMITS, said, strict=True)})


def _words(limits: GroupLimits) -> list[str]:
    said = {word: getattr(limits, word) for word in _LIMITS}
    return [text for word, value in said.items() if value is not None for text in (FIELDS[word], str(value))]


def _number(stored: object) -> int | None:
    """Node may have written a fraction, or what is no number at all."""
    try:
        return None if stored == b"" else int(float(stored))  # type: ignore[arg-type]  # what it is not, it says
    except (TypeError, ValueError):
        return None
