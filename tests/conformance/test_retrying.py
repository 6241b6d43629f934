from bullpen.testing.conformance.retrying import *
