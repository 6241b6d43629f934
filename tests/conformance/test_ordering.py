from bullpen.testing.conformance.ordering import *
