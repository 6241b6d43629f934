from bullpen.testing.conformance.renewing import *
