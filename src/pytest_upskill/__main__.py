"""``python -m pytest_upskill`` is the command ``pytest-upskill``."""

import sys

from .cli import main

sys.exit(main())
