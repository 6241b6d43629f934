from bullpen.testing.conformance.noting import *
