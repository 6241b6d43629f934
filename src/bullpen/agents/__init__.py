"""Agent runs: the loop, models, tools, sandboxes, credits and progress."""
