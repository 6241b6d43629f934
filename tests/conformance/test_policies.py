from bullpen.testing.conformance.policies import *
