"""Tools: what a model may ask for, what each takes, and what a crash in the middle of a call means."""
