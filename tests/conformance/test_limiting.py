from bullpen.testing.conformance.limiting import *
