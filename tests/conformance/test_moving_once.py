from bullpen.testing.conformance.moving_once import *
