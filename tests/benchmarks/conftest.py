"""The benchmarks are not installed; their package is the checkout's folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
