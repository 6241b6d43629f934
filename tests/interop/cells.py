"""The cells of the table in docs/explanation/interop.md: which test shows which feature, with whom.

`scripts/interop.py` reads these marks, without running anything, and writes the table.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

NPM_5 = "npm-5"
NPM_6 = "npm-6"
PYPI = "pypi"
PEERS = (NPM_5, NPM_6, PYPI)
"""The other clients, each in the version that package.json or pyproject.toml pins."""

TO_BULLPEN = "peer → Bullpen"
"""The peer begins, and Bullpen goes on with what it left."""
TO_PEER = "Bullpen → peer"
"""Bullpen begins, and the peer goes on with what we left."""
BOARD = "Bull Board"

Mark = Callable[[Callable[..., Any]], Callable[..., Any]]


def cell(feature: str, direction: str, *, lacks: Mapping[str, str] | None = None) -> Mark:
    """This test shows the feature in that direction, with each peer but those that lack it.

    `lacks` says why, by peer: in the words of the table.
    """
    with_whom = [peer for peer in PEERS if peer not in (lacks or {})]
    return pytest.mark.parametrize("peer", with_whom, indirect=True)


def board(feature: str) -> Mark:
    """This test shows that Bull Board can do this with our jobs, on either major of BullMQ."""
    return cell(feature, BOARD, lacks={PYPI: "Bull Board is a Node program"})
