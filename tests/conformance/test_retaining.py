from bullpen.testing.conformance.retaining import *
