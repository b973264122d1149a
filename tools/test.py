"""Tests a model: the command `mmlinattn test`."""

import sys
from pathlib import Path

# a clone's package, where none is installed
sys.path.append(str(Path(__file__).resolve().parents[1]))

from mmlinattn.__main__ import command

main = command('test')

if __name__ == '__main__':
    main()
