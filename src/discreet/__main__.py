"""`python -m discreet`: the command line."""

import sys

from discreet.cli import main

sys.exit(main())
