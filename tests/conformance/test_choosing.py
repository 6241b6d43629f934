from bullpen.testing.conformance.choosing import *
