"""Remote workers: jobs are claimed, kept alive and settled over HTTP by machines that do not reach the store."""
