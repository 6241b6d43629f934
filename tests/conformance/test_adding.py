from bullpen.testing.conformance.adding import *
