"""SQL state of record: what the server keeps, the outbox, and the read model. Needs `bullpen[server]`."""
