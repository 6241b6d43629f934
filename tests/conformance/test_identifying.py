from bullpen.testing.conformance.identifying import *
