from bullpen.testing.conformance.expecting import *
