from bullpen.testing.conformance.settling import *
