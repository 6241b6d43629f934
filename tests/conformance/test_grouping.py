from bullpen.testing.conformance.grouping import *
