from bullpen.testing.conformance.ticking import *
