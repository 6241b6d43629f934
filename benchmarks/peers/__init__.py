"""Other queues, each in an environment of its own."""
