from bullpen.testing.conformance.removing import *
