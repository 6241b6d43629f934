"""Files of runs on record: what was given, what was made, and the workspace as it was last saved."""
