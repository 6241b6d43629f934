"""Bodies and answers of the API. Bodies are read strictly: a field that nobody knows is refused."""
