"""A small shop whose jobs can be watched: what `bullpen dev` runs."""
