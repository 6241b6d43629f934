"""Arithmetic of time: when to try again. No store, no clock, no waiting."""
