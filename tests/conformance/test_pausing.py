from bullpen.testing.conformance.pausing import *
