from bullpen.testing.conformance.moving_steps import *
