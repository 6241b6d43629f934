"""What a producer holds: add, inspect, steer, follow, await."""
