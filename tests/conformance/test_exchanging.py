from bullpen.testing.conformance.exchanging import *
