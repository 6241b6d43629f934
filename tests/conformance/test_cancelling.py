from bullpen.testing.conformance.cancelling import *
