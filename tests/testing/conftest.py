"""An application of its own for each test."""

from collections.abc import Callable

import pytest

from bullpen import Bullpen


@pytest.fixture
def pen(bullpen_use: Callable[[Bullpen], Bullpen]) -> Bullpen:
    return bullpen_use(Bullpen("sqlite:never-opened.db"))
