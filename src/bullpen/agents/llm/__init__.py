"""Models: one way to ask any of them, what it costs at most, and what to do when one does not answer."""
