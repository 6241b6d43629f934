"""Bad input of every kind is refused by name, and nothing is changed or lost by it."""
