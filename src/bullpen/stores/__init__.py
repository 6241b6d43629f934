"""Where jobs are kept: one contract (base.py), a SQLite file, a Redis server."""
