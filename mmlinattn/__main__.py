"""mim, in a process that knows ``mmlinattn::``: ``python -m mmlinattn gridsearch``."""

import sys

if __name__ == '__main__':
    try:
        from mim.cli import cli

        from .hub import register
    except ImportError as error:
        print(
            f'python -m mmlinattn: error: {sys.executable} lacks openmim ({error}): '
            'pip install openmim, or take .venv/bin/python after make env',
            file=sys.stderr,
        )
        sys.exit(2)
    register()
    cli(prog_name='python -m mmlinattn')
