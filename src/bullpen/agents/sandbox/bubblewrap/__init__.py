"""Sandboxes on the host's own kernel: namespaces made by bubblewrap, which needs no daemon and no root."""

from bullpen.agents.sandbox.bubblewrap.driver import BubblewrapDriver

__all__ = ["BubblewrapDriver"]
