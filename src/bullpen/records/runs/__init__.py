"""Runs of agents on record: requests, the tasks they are made of, their states, and what happened in them."""
