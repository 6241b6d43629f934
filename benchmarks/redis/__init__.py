"""Measures Bullpen on Redis beside BullMQ, of Node and of PyPI: `python -m benchmarks.redis`."""
