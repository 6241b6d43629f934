"""Dead letters: the failed jobs of all queues, found, grouped, tried again, exported, removed."""
