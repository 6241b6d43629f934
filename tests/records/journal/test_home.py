from bullpen.testing.journals import *
