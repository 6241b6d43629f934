"""Runs of agents from the request to the result, on real queues and records."""
