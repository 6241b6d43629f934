"""The words of the house: what a job is, how it may move, what can be said of it."""
