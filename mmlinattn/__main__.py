"""mim, in a process that knows ``mmlinattn::``: ``python -m mmlinattn gridsearch``."""

import sys

from .hub import register

if __name__ == '__main__':
    try:
        from mim.cli import cli
    except ImportError as error:
        print(
            f'python -m mmlinattn: error: this needs openmim ({error}): pip install '
            'openmim',
            file=sys.stderr,
        )
        sys.exit(2)
    register()
    cli(prog_name='python -m mmlinattn')
