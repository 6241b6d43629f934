"""Durable steps: a program's record of what it has done, so that it goes on where it was."""
