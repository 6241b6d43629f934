from bullpen.testing.conformance.moving import *
