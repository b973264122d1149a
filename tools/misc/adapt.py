"""Gives a trained backbone other attentions: the command `mmlinattn adapt`."""

import sys
from pathlib import Path

# a clone's package, where none is installed
sys.path.append(str(Path(__file__).resolve().parents[2]))

from mmlinattn.__main__ import command

main = command('adapt')

if __name__ == '__main__':
    main()
