from bullpen.testing.conformance.signalling import *
