"""For all tests."""

from hypothesis import settings

# A machine that is busy with other tests is no reason to fail.
settings.register_profile("bullpen", deadline=None)
settings.load_profile("bullpen")
