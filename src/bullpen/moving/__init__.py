"""Moving queues from one store to another while both are in use."""
