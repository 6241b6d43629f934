from bullpen.testing.conformance.claiming import *
