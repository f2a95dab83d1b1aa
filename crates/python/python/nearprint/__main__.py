"""The command as `python -m nearprint`."""

import sys

from nearprint import main

sys.exit(main())
