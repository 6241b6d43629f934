from bullpen.testing.conformance.children import *
