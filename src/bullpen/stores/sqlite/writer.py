"""The one writer of a file in this process: a thread that commits in groups.

    verbs ──▶ inbox ──▶ take all that is there ──▶ take the turn ──▶ one transaction ──▶ commit
                                                                            └──▶ deliver answers

Whatever was asked while the last commit was on its way to the disk shares the next one, so
the more that is asked, the cheaper each becomes. A verb that is refused (a `BullpenError`)
has changed nothing and is answered so; any other error undoes the whole transaction, and its
verbs are tried again one by one, so that one that cannot be carried out takes no other along.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bullpen.clock import Clock
from bullpen.errors import BullpenError, StoreUnavailable
from bullpen.stores.sqlite.connection import translate
from bullpen.stores.sqlite.grouping import stand_touched
from bullpen.stores.sqlite.migrating import check_version
from bullpen.stores.sqlite.requests import forget_old
from bullpen.stores.sqlite.transaction import News, QueueBook, Transaction
from bullpen.stores.sqlite.turnlock import TurnLock

logger = logging.getLogger("bullpen.sqlite")

_GROUP = 256
"""A commit carries that many verbs at most, so that the first need not wait for an endless line."""
_FORGET_EVERY_MS = 5_000


class Work:
    """One verb to carry out, and the future of its answer."""

    __slots__ = ("answer", "do", "error", "future", "loop")

    def __init__(self, do: Callable[[Transaction], Any], future: "asyncio.Future[Any]") -> None:
        self.do = do
        self.future = future
        self.loop = future.get_loop()
        self.answer: Any = None
        self.error: BaseException | None = None

    def deliver(self) -> None:
        if self.future.done():
            return  # its caller went away
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)


class Writer:
    def __init__(self, path: Path, db: sqlite3.Connection, clock: Clock, on_commit: Callable[[News], None]) -> None:
        self._path = path
        self._db = db
        self._clock = clock
        self._on_commit = on_commit
        self._turn = TurnLock(path)
        self._book = QueueBook()
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._forget_at_ms = 0
        self._closed = False
        self._must_sync_fully = False
        self.commits = 0
        """How many there were; counted before anyone is answered."""
        self._thread = threading.Thread(target=self._run, name=f"bullpen-writer {path.name}", daemon=True)
        self._thread.start()

    def submit(self, do: Callable[[Transaction], Any]) -> "asyncio.Future[Any]":
        """Carry this out in the next commit; the answer comes once it is on disk."""
        if self._closed:
            raise StoreUnavailable(f"{self._path}: the store is closed")
        future = asyncio.get_running_loop().create_future()
        self._inbox.put(Work(do, future))
        return future

    def sync_fully(self) -> None:
        """From the next commit on, wait for the disk."""
        self._must_sync_fully = True

    def close(self) -> None:
        """Finish what was asked, then end the thread. Blocks: not for the event loop."""
        if not self._closed:
            self._closed = True
            self._inbox.put(None)
        self._thread.join()

    def let_go_after_fork(self) -> None:
        """In a forked child, where the thread does not live: refuse work, and keep no hold on the turn."""
        self._closed = True
        self._turn.close()

    # ── in the writer's thread ───────────────────────────────────────────────────────────

    def _run(self) -> None:
        open_ = True
        while open_:
            group: list[Work] = []
            work = self._inbox.get()
            while True:
                if work is None:
                    open_ = False
                    break
                group.append(work)
                if len(group) >= _GROUP:
                    break
                try:
                    work = self._inbox.get_nowait()
                except queue.Empty:
                    break
            if group:
                self._carry_out(group)
        self._end()

    def _carry_out(self, group: list[Work]) -> None:
        try:
            news = self._commit(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, each verb's caller is told
            if len(group) > 1:
                for work in group:
                    work.error = None
                    self._carry_out([work])
                return
            group[0].error = self._in_our_words(error)
            news = News()
        # What was committed is answered first: to wake those who sleep is a courtesy that may fail.
        _deliver(group)
        if news:
            try:
                self._on_commit(news)
            except Exception:
                logger.exception("could not tell others of a commit; they look again by themselves")

    def _commit(self, group: list[Work]) -> News:
        self._turn.take()
        try:
            if self._must_sync_fully:
                self._must_sync_fully = False
                self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                check_version(self._db, str(self._path))
                tx = Transaction(self._db, self._book, self._clock.now_ms())
                for work in group:
                    try:
                        work.answer = work.do(tx)
                    except BullpenError as refusal:
                        work.error = refusal
                self._forget_now_and_then(tx)
                stand_touched(tx)
                tx.flush()
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        finally:
            self._turn.give()
        news = tx.committed()
        self.commits += 1
        news.number = self.commits
        return news

    def _forget_now_and_then(self, tx: Transaction) -> None:
        if tx.now_ms >= self._forget_at_ms:
            self._forget_at_ms = tx.now_ms + _FORGET_EVERY_MS
            forget_old(tx)

    def _in_our_words(self, error: Exception) -> Exception:
        return translate(error, self._path) if isinstance(error, sqlite3.Error | OSError) else error

    def _end(self) -> None:
        # Closing the last connection folds the log back into the file, which wants a turn too.
        with self._turn.held():
            self._db.close()


def _deliver(group: list[Work]) -> None:
    """Answer all, waking each event loop once."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Work]] = defaultdict(list)
    for work in group:
        by_loop[work.loop].append(work)
    for loop, works in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_here, works)
        except RuntimeError:
            pass  # that loop has ended, and its callers with it


def _deliver_here(works: list[Work]) -> None:
    for work in works:
        work.deliver()
