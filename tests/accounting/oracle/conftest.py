"""Makes the oracle's modules importable by name in the tests beside it (and nowhere else)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
