from bullpen.testing.conformance.waiting import *
