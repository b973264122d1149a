#!/usr/bin/env python3
"""Makes the virtual environment of a clone: the command `mmlinattn env`."""

import sys
from pathlib import Path

# the package of this clone, which another Python may have in another version
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mmlinattn.__main__ import command

main = command('env')

if __name__ == '__main__':
    main()
