"""Metrics, traces, logs and health: observers of the rooms below, which know nothing of them."""
