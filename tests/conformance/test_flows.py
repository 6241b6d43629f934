from bullpen.testing.conformance.flows import *
