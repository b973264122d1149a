"""Runs the papers' claims in miniature; see ``--help``."""

import sys
from pathlib import Path

# The packages are beside this folder, and no module of it is a top-level one.
BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path = [path for path in sys.path if Path(path).resolve() != BENCHMARKS / 'claims']
sys.path.append(str(BENCHMARKS))

if __name__ == '__main__':
    from claims.command import main

    main()
