"""What a supervisor and its processes agree on."""

SUPERVISED = "BULLPEN_SUPERVISED"
"""Set in processes that a supervisor replaces when they end."""
NAME = "BULLPEN_WORKER_NAME"
"""The name that a supervisor knows this process's worker by."""
EXIT_REPLACE = 75
"""The exit code of a process that wants to be replaced."""
