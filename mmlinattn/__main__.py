"""mim, in a process that knows ``mmlinattn::``: ``python -m mmlinattn gridsearch``."""

from mim.cli import cli

from .hub import register

if __name__ == '__main__':
    register()
    cli(prog_name='python -m mmlinattn')
