"""Tests of agent runs."""
