from bullpen.testing.conformance.families import *
