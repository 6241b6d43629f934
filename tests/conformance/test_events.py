from bullpen.testing.conformance.events import *
