"""One module a peer, run by the Python of the peer's own environment: `python -m benchmarks.peers.drivers.huey`.

These modules, and `benchmarks.peers.driving` which they share, import nothing else of ours.
"""
