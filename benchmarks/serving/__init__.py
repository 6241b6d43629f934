"""The server under load: its streams, its pages, and what it costs the store."""
