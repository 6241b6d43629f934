from bullpen.testing.conformance.remembering import *
