from bullpen.testing.conformance.opening import *
