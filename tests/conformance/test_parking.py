from bullpen.testing.conformance.parking import *
