from bullpen.testing.conformance.rescuing import *
