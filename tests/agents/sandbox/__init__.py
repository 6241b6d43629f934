"""Tests of sandboxes, with a real bubblewrap."""
