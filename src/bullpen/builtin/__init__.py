"""Ready job types. Needs `bullpen[server]`: they keep what they know in SQL records."""
