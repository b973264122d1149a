"""Makes the project's virtual environment: `.venv` or `.venv-modern`.

It needs nothing but a Python 3.9 or newer, and may be stopped and run again at
any time: what is done already stays done.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

ROOT = Path(__file__).resolve().parents[2]
# What the installed package is made from.
SOURCES = {'mmlinattn', 'tools', 'configs', 'model-index.yml', 'dataset-index.yml'}
SOURCES |= {'setup.py', 'pyproject.toml', 'MANIFEST.in', 'README.md', 'LICENSE'}


@dataclass(frozen=True)
class Stack:
    """An environment: its folder, versions of Python with the preferred one first, and
    packages that come without dependencies."""

    folder: str
    versions: tuple[str, ...]
    alone: tuple[str, ...] = ()


STACKS = {
    'openmmlab': Stack(folder='.venv', versions=('3.11', '3.10', '3.9')),
    'modern': Stack(
        folder='.venv-modern',
        versions=('3.13', '3.12', '3.14'),
        alone=('onedl-mim==0.5.1',),
    ),
}

Command = Union[str, Path]  # a program, or a word for it


def version_of(python: Command) -> Optional[str]:
    """Return the version of an interpreter that starts and can make environments, else
    None."""
    code = 'import ensurepip, sys; print("{}.{}".format(*sys.version_info))'
    try:
        done = subprocess.run([python, '-c', code], capture_output=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode().strip()


def find_python(stack: str) -> Command:
    """Return the interpreter of a stack's environment, or one to make it with."""
    folder, versions = STACKS[stack].folder, STACKS[stack].versions
    own = ROOT / folder / 'bin' / 'python'
    if os.path.lexists(own):
        if version_of(own) in versions:
            return own
        raise RuntimeError(f'{ROOT / folder} has another Python, or lost it: remove it')
    # the first on PATH may be a shim of pyenv that does not start
    paths = os.environ.get('PATH', '').split(os.pathsep)
    paths += map(str, Path.home().glob('.pyenv/versions/*/bin'))
    names = [f'python{version}' for version in versions]
    interpreters = [shutil.which(name, path=path) for name in names for path in paths]
    for python in filter(None, [sys.executable, *interpreters]):
        if version_of(python) in versions:
            return python
    raise RuntimeError(
        f'the {stack} stack needs Python {" or ".join(versions)} with ensurepip, and '
        f'there is none: install one (`sudo apt install python{versions[0]}-venv`, '
        '`uv python install`, conda), or name one: make env PYTHON=/path/to/it'
    )


def run(*command: Command) -> None:
    """Run a command, whose own output says what it does and what went wrong."""
    print('$', *command, flush=True)
    if subprocess.run(command).returncode:
        raise RuntimeError(f'`{" ".join(map(str, command))}` failed: see above')


def fingerprint(names: Iterable[str]) -> str:
    """Return the hash of the names and contents of files and folders."""
    digest = hashlib.sha256()
    for path in (ROOT / name for name in sorted(names)):
        for file in sorted(path.rglob('*')) if path.is_dir() else [path]:
            if file.is_file() and not {'__pycache__', '.mim'} & set(file.parts):
                digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()


def read_stamp(stamp: Path) -> dict[str, str]:
    """Return what an environment was made of, {} for none or half of a stamp."""
    try:
        return json.loads(stamp.read_text())
    except (OSError, ValueError):
        return {}


def write_stamp(stamp: Path, content: dict[str, str]) -> None:
    """Write a stamp, whole or not at all."""
    draft = stamp.with_suffix('.part')
    draft.write_text(json.dumps(content))
    draft.replace(stamp)


def remove_halves(folder: Path) -> None:
    """Remove the records of packages whose installation was killed, which pip would
    take for installed ones; it writes INSTALLER behind a package's files."""
    for record in folder.glob('lib/python*/site-packages/*.dist-info'):
        if not (record / 'INSTALLER').exists():
            print(f'half of a package is installed again: {record.stem}')
            shutil.rmtree(record)


def make(stack: str, base: Command) -> None:
    """Bring the environment of a stack up to date."""
    folder, requirements = ROOT / STACKS[stack].folder, f'requirements/{stack}.txt'
    python, stamp = folder / 'bin' / 'python', folder / 'make-env.json'
    pip = (python, '-m', 'pip', '--disable-pip-version-check')
    done = read_stamp(stamp)
    wanted = dict(stack=fingerprint([requirements]), package=fingerprint(SOURCES))
    if done.get('stack') != wanted['stack']:
        if not (folder / 'bin' / 'pip').exists():
            run(base, '-m', 'venv', folder)
        remove_halves(folder)
        run(*pip, 'install', '-r', ROOT / requirements)
        if STACKS[stack].alone:
            run(*pip, 'install', '--no-deps', *STACKS[stack].alone)
        write_stamp(stamp, dict(wanted, package=''))
    if done != wanted:
        with tempfile.TemporaryDirectory() as copy:
            # mim would take what a build leaves in the tree for the package
            for name in SOURCES:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, Path(copy, name))
                else:
                    shutil.copy(ROOT / name, Path(copy, name))
            # the modern stack has the dependencies by other names
            options = ('--no-deps', '--no-build-isolation', '--force-reinstall')
            run(*pip, 'install', '--quiet', *options, copy)
        # for what imports mmdet or mmseg before us
        run(python, '-I', '-m', 'mmlinattn.ops', '--install')
        write_stamp(stamp, wanted)
    print(f'{folder.name} is {"up to date" if done == wanted else "ready"}')


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    stacks = 'openmmlab (Python 3.9 to 3.11) where its Python is found, else modern'
    add('--stack', choices=STACKS, help=f'default: {stacks}')
    add('--print-folder', action='store_true', help='only print the folder')
    add('--print-stacks', action='store_true', help='only print what can be made here')
    args = parser.parse_args(argv)
    if not (ROOT / 'requirements').is_dir():
        parser.exit(2, 'make env: error: this needs a clone of the repository\n')
    os.environ.pop('PYTHONPATH', None)  # pip would take what is there for installed
    pythons = {}
    try:
        for stack in [args.stack] if args.stack else STACKS:
            try:
                pythons[stack] = find_python(stack)
            except RuntimeError as error:
                print('ignored:', error, file=sys.stderr)
        if not pythons:
            raise RuntimeError('no stack has its Python')
        stack, python = next(iter(pythons.items()))
        if args.print_folder:
            print(STACKS[stack].folder)
        elif args.print_stacks:
            print(*pythons)
        else:
            make(stack, python)
    except (RuntimeError, OSError) as error:
        parser.exit(2, f'make env: error: {error}\n')
    except KeyboardInterrupt:
        parser.exit(130, '\nmake env: stopped; run the same command again to go on\n')


if __name__ == '__main__':
    main()
