"""A shop that sends its mail from jobs."""
