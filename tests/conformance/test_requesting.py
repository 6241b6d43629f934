from bullpen.testing.conformance.requesting import *
