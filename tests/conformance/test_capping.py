from bullpen.testing.conformance.capping import *
