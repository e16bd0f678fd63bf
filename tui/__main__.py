"""`python -m tui` is `wltui`."""

import sys

from tui.cli import main

sys.exit(main())
