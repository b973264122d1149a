"""Draws predictions of models side by side: the command `mmlinattn compare`."""

import sys
from pathlib import Path

# a clone's package, where none is installed
sys.path.append(str(Path(__file__).resolve().parents[2]))

from mmlinattn.__main__ import command

main = command('compare')

if __name__ == '__main__':
    main()
