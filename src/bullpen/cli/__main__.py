"""`python -m bullpen.cli` is `bullpen`."""

import sys

from bullpen.cli.main import main

sys.exit(main())
