from bullpen.testing.conformance.abandoning import *
