from bullpen.testing.conformance.deduplicating import *
