from bullpen.testing.conformance.workers import *
