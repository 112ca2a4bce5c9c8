"""``python -m starr``: the command line."""

import sys

from starr.cli.main import main

sys.exit(main())
