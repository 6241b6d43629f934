from bullpen.testing.conformance.scheduling import *
