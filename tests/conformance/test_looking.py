from bullpen.testing.conformance.looking import *
