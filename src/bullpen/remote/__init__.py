"""Workers on machines that do not reach the store: they work over HTTPS, through a Bullpen server."""
