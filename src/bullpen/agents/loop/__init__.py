"""The agent loop: a model asks for tools until it has an answer; each call is a step, on record with its price."""
