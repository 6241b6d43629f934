"""A place for jobs on each store in turn."""

from tests.support.places import place, redis_server

__all__ = ["place", "redis_server"]
