from bullpen.testing.conformance.steering import *
