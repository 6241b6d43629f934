"""Failed comparisons of the machine show what differs."""

import pytest

pytest.register_assert_rewrite("bullpen.testing.machine")
