"""Measures Bullpen beside a peer and beside the bare limit: `make bench`."""
