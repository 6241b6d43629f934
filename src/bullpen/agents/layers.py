"""A workspace as it was last saved, spread over manifests of which each has what one or more saves changed.

A new one takes in those on top that are no larger, as log-structured trees do:

    [ 4096 ] [ 512 ] [ 2 ] [ 1 ]  and a change of 1:  [ 4096 ] [ 512 ] [ 4 ]

So what is saved is written again once for each time that its layer doubles, whatever else is in the workspace: n saves
write O(n log n) bytes, and the last of them is read from O(log n) manifests.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Self

from bullpen.agents.manifest import SMALL, Entry, Joiner, Kind, Manifest, Splitter, decode_manifest, new_manifest
from bullpen.agents.sandbox.base import Changes
from bullpen.agents.sandbox.limits import Limits
from bullpen.errors import WorkspaceUnsaved
from bullpen.records.blobs.blobs import Blobs

_LISTED = 128
"""Bytes that a file takes in a manifest, about."""
_TOGETHER = 8 << 20
_ORDER: tuple[Kind, ...] = ("folder", "file", "link", "same")


class Saved(NamedTuple):
    """A workspace that can be gone back to."""

    name: str
    """Of its newest manifest."""
    size: int
    """Of all files."""
    blobs: frozenset[str]
    """All that it takes to restore it, but for that manifest."""
    history_bytes: int
    """Kept by all saves since the oldest that can be gone back to."""


@dataclass(frozen=True)
class _Layer:
    name: str
    entries: Mapping[bytes, Entry]
    gone: frozenset[bytes]

    @functools.cached_property
    def weight(self) -> int:
        """What is written again where it becomes a part of another: large files are not."""
        listed = _LISTED * (len(self.entries) + len(self.gone))
        return listed + sum(entry.size for entry in self.entries.values() if entry.size < SMALL)

    def over(self, under: "_Layer", *, is_lowest: bool) -> "_Layer":
        """Both as one."""
        left = {name: entry for name, entry in under.entries.items() if name not in self.gone}
        gone: frozenset[bytes] = frozenset() if is_lowest else self.gone | (under.gone - self.entries.keys())
        return _Layer("", {**left, **self.entries}, gone)


class Layers:
    """What was last saved of a workspace: nothing at first."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._layers: list[_Layer] = []
        self._history_bytes = 0
        self.entries: dict[bytes, Entry] = {}
        """All files, by their names."""
        self.newest: Saved | None = None
        self._saved: list[Saved] = []
        """Those of which one may be the newest on record."""

    @classmethod
    async def load(cls, blobs: Blobs, name: str) -> Self:
        """As it was saved under this name. CheckpointMissing, BlobMissing or BlobDamaged if it no longer can be."""
        data = await blobs.get(name)
        newest = decode_manifest(data)
        layers = cls(blobs)
        for below in newest.below:
            layers._lay(below, decode_manifest(await blobs.get(below)))
        layers._lay(name, newest)
        layers._history_bytes = newest.history_bytes + len(data)
        layers._note(name)
        return layers

    # ── saving ───────────────────────────────────────────────────────────────────────────

    async def save(self, changes: Changes, limits: Limits) -> Saved:
        """Keep what changed. WorkspaceUnsaved if the workspace is beyond its limits."""
        known = {entry.digest: entry.where for entry in self.entries.values() if entry.where is not None}
        most_bytes = 2 * limits.disk_bytes
        splitter = Splitter(self._blobs, known, most_bytes=most_bytes, most_files=limits.files)
        try:
            found = await asyncio.to_thread(splitter.split, changes.archive)
            change = self._change(found, changes)
            if self.newest is not None and not change.entries and not change.gone:
                return self.newest
            _check({**self._without(change.gone), **change.entries}.values(), most_bytes, limits.files)
            return await self._keep(change, splitter)
        finally:
            for draft in splitter.drafts:
                await asyncio.to_thread(self._blobs.drop, draft)

    def _change(self, found: Sequence[Entry], changes: Changes) -> _Layer:
        """What is other than it was."""
        there = {entry.name for entry in found}
        gone = self.entries.keys() - there if changes.is_all else (self.entries.keys() & changes.gone) - there
        return _Layer(
            "", {one.name: one for one in found if not one.is_like(self.entries.get(one.name))}, frozenset(gone)
        )

    def _without(self, gone: frozenset[bytes]) -> dict[bytes, Entry]:
        return {name: entry for name, entry in self.entries.items() if name not in gone}

    async def _keep(self, change: _Layer, splitter: Splitter) -> Saved:
        below, top = list(self._layers), change
        while below and below[-1].weight.bit_length() <= top.weight.bit_length():
            under = below.pop()
            top = top.over(under, is_lowest=not below)
        entries = list(top.entries.values())
        if len(below) < len(self._layers):
            entries = await self._moved_together(entries, splitter)
        entries = await asyncio.to_thread(splitter.placed, entries)
        kept_bytes = sum([(await self._blobs.keep(draft)).size for draft in splitter.drafts])
        manifest = new_manifest(entries, top.gone, [layer.name for layer in below], self._history_bytes + kept_bytes)
        data = manifest.encoded()
        name = await self._blobs.put(data)
        self._layers = below
        self._history_bytes = manifest.history_bytes + len(data)
        self.entries = self._without(change.gone)
        self._lay(name, manifest)
        return self._note(name)

    async def _moved_together(self, entries: Iterable[Entry], splitter: Splitter) -> list[Entry]:
        """The same with all small files in the new pack, so that there are no more packs than layers."""
        moved: list[Entry] = []
        for blob, group in _by_blob(entries):
            if blob and group[0].size < SMALL:
                moved += await asyncio.to_thread(splitter.move, group, await self._blobs.get(blob))
            else:
                moved += group
        return moved

    def begin_history(self) -> None:
        """What is older than the newest is not to be gone back to."""
        if self.newest is not None:
            self._history_bytes = self.newest.size

    def _lay(self, name: str, manifest: Manifest) -> None:
        layer = _Layer(name, {entry.name: entry for entry in manifest.entries}, frozenset(manifest.gone))
        self._layers.append(layer)
        self.entries = {**self._without(layer.gone), **layer.entries}

    def _note(self, name: str) -> Saved:
        blobs = {entry.blob for entry in self.entries.values() if entry.blob}
        below = {layer.name for layer in self._layers[:-1]}
        size = sum(entry.size for entry in self.entries.values())
        self.newest = Saved(name, size, frozenset(blobs | below), self._history_bytes)
        self._saved.append(self.newest)
        return self.newest

    def found(self, name: str) -> Saved | None:
        """The one that is on record under this name, if it was saved or loaded here."""
        at = next((n for n, one in enumerate(self._saved) if one.name == name), None)
        if at is None:
            return None
        del self._saved[:at]  # no older one is asked for again
        return self._saved[0]

    # ── restoring ────────────────────────────────────────────────────────────────────────

    async def archive(self) -> bytes:
        """All of it, for a sandbox to restore."""
        joiner = Joiner()
        async for entries, contents in self._fetched():
            await asyncio.to_thread(joiner.add, entries, contents)
        return await asyncio.to_thread(joiner.finish)

    async def _fetched(self) -> AsyncIterator[tuple[Sequence[Entry], Mapping[str, bytes]]]:
        """The entries, some at a time, with the blobs that they need, each of which is read once."""
        # Folders before what is in them, and files before the links to them.
        order = sorted(self.entries.values(), key=lambda entry: (_ORDER.index(entry.kind), entry.name))
        contents: dict[str, bytes] = {}
        some: list[Entry] = []
        for kind, same in groupby(order, key=lambda entry: entry.kind):
            for blob, group in _by_blob(same) if kind == "file" else [("", list(same))]:
                if blob:
                    contents[blob] = await self._blobs.get(blob)
                some += group
                if sum(map(len, contents.values())) > _TOGETHER:
                    yield some, contents
                    some, contents = [], {}
        yield some, contents


def _by_blob(entries: Iterable[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Together those whose contents are in the same blob."""
    for blob, group in groupby(
        sorted(entries, key=lambda entry: (entry.blob, entry.name)), key=lambda entry: entry.blob
    ):
        yield blob, list(group)


def _check(entries: Collection[Entry], most_bytes: int, most_files: int) -> None:
    if len(entries) > most_files:
        raise WorkspaceUnsaved(f"the workspace has more than {most_files} files")
    if sum(entry.size for entry in entries) > most_bytes:
        raise WorkspaceUnsaved("the workspace holds more than a checkpoint may")
