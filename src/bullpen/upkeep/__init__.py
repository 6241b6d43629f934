"""Chores that any worker may do, and that one doing them is enough for."""
