"""Measures models or functions side by side; see ``--help``, and for a whole plan
``--plan gpu --help``."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# It measures this source tree, whatever is installed.
sys.path[:0] = [str(ROOT), str(ROOT / 'tools')]

if __name__ == '__main__':
    if any(arg.split('=')[0] == '--plan' for arg in sys.argv[1:]):
        from side_by_side.plan import main
    else:
        from side_by_side.command import main
    main()
