"""Measures Bullpen beside its peers and beside the bare limit: `make bench`."""
