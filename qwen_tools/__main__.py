"""``python -m qwen_tools``."""

import sys

from .cli import main

sys.exit(main())
