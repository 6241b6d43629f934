"""The Model Context Protocol: queues and jobs as tools for an assistant. Read-only unless told otherwise."""
