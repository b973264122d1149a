"""How the person started this program, and so which command to print next."""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Optional

from .verbs import VERBS

NAME = 'mmlinattn'
# what sys.argv[0] is where no file was started
UNNAMED = ('', '-', '-c', '-m', 'ipykernel_launcher.py')
SCRIPTS = {verb.script for verb in VERBS.values()}


def name() -> str:
    """Return the name of the running program, for messages."""
    name = os.path.basename(sys.argv[0])
    return NAME if name in UNNAMED else name


def rename(verb: str) -> None:
    """Let the program be called ``mmlinattn VERB`` in messages, or ``python -m
    mmlinattn VERB``; a script in tools/ keeps its own name."""
    if find_tools() is None:
        started = 'python -m mmlinattn' if is_module() else NAME
        sys.argv[0] = f'{started} {verb}'


def is_module() -> bool:
    """Return whether ``python -m mmlinattn`` was started."""
    return Path(sys.argv[0]).name == '__main__.py' or sys.argv[0].startswith('python ')


def find_tools() -> Optional[Path]:
    """Return the folder tools/ whose script was started, of a clone or of the installed
    package; None if something else was."""
    script = Path(sys.argv[0]).resolve()
    for folder in list(script.parents)[:2]:
        place = script.relative_to(folder).as_posix()
        if place in SCRIPTS and (folder / VERBS['new-config'].script).is_file():
            return folder
    return None


def command(verb: str, *words: str) -> str:
    """Return a command of ours for a shell, in the shortest form that works here: a
    script in tools/ where one was started, ``mmlinattn`` where the shell finds this
    installation's, and otherwise the Python that runs, with -m."""
    return shlex.join([*words_of(verb), *words])


def words_of(verb: str) -> list[str]:
    """Return the words of a shell that start a command."""
    tools = find_tools()
    if tools is not None:
        # with the Python that has the libraries
        return [sys.executable, os.path.relpath(tools / VERBS[verb].script)]
    if is_on_path():
        return [NAME, verb]
    return [sys.executable, '-m', NAME, verb]


def train_on_gpus(config: str, number: int) -> str:
    """Return the command that trains a config on several GPUs of this machine."""
    tools = find_tools()
    if tools is not None:
        script = os.path.relpath(tools / 'dist_train.sh')
        return shlex.join(['bash', script, config, str(number)])
    torchrun = ['torchrun']
    if not is_on_path():
        torchrun = [sys.executable, '-m', 'torch.distributed.run']
    options = [f'--nproc_per_node={number}', '-m', NAME, 'train', config]
    return shlex.join([*torchrun, *options, '--launcher', 'pytorch'])


def is_on_path() -> bool:
    """Return whether a shell finds the command ``mmlinattn`` of this Python."""
    program = shutil.which(NAME)
    if not program:
        return False
    user = sysconfig.get_path('scripts', f'{os.name}_user')
    own = (os.path.dirname(sys.executable), sysconfig.get_path('scripts'), user)
    return os.path.realpath(os.path.dirname(program)) in map(os.path.realpath, own)
