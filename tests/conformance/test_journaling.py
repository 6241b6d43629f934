from bullpen.testing.conformance.journaling import *
