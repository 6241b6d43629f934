"""The command line: one verb per file, all output through `showing`."""
