"""Each test has the shop's jobs in a store of its own. The fixtures come with Bullpen."""

from collections.abc import Callable

import pytest

from bullpen import Bullpen
from shop import jobs


@pytest.fixture
def pen(bullpen_use: Callable[[Bullpen], Bullpen]) -> Bullpen:
    return bullpen_use(jobs.pen)


@pytest.fixture(autouse=True)
def mail_server(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The mails that were sent in this test."""
    sent: list[str] = []
    monkeypatch.setattr(jobs, "outbox", sent)
    monkeypatch.setattr(jobs.MailServer, "away_for", 0)
    return sent
