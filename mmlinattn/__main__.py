"""The command ``mmlinattn``, which is also ``python -m mmlinattn``.

Scripts in tools/ call :func:`command`. mim's own verbs run in a process that knows
``mmlinattn::``.
"""

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn, Optional

from mmlinattn import __version__
from mmlinattn.cli import program, start
from mmlinattn.cli.verbs import MIM_VERBS, VERBS

# on import, so that workers of data loaders that are spawned have it, too
start.prepare_process()

# what there is of both: with the name of a package, it is mim's
SHARED = ('train', 'test')


def usage() -> str:
    """Return the help: a line and an example for each command."""
    width = max(map(len, VERBS)) + 2
    lines = ['usage: mmlinattn COMMAND ...', '']
    for verb, known in VERBS.items():
        lines.append(f'  {verb:<{width}}{known.line}')
        lines.append(f'  {"":<{width}}$ mmlinattn {verb} {known.example}')
    shared = ', '.join([*MIM_VERBS, *(f'{verb} PACKAGE' for verb in SHARED)])
    lines += [
        '',
        'mmlinattn COMMAND --help lists the options of a command.',
        f"mim's commands are taken, too, with configs of ours: {shared}.",
    ]
    return '\n'.join(lines)


def command(verb: str) -> Callable[..., None]:
    """Return the function of a command, for a script: it takes its arguments, by
    default those of the process."""

    def main(argv: Optional[Sequence[str]] = None) -> None:
        run(verb, sys.argv[1:] if argv is None else argv)

    return main


def run(verb: str, argv: Sequence[str]) -> None:
    """Run a command."""
    known = VERBS[verb]
    errors: AbstractContextManager = nullcontext()
    if not known.is_alone:
        start.check_libraries()
        from mmlinattn.cli.parser import errors_in_one_line

        errors = errors_in_one_line(ImportError)  # such as of a wrong mmcv
    with errors:
        module = import_module(f'mmlinattn.commands.{known.module}')
    module.main(argv)


def run_mim(argv: Sequence[str]) -> NoReturn:
    """Run a command of mim, which ends the program."""
    try:
        from mim.cli import cli

        from mmlinattn.hub import register
    except ImportError as error:
        fail(
            f'{sys.executable} lacks openmim ({error}): pip install openmim, or take '
            '.venv/bin/python after make env'
        )
    register()
    cli(args=list(argv), prog_name=prog_name())
    sys.exit()


def prog_name() -> str:
    """Return the name of this program."""
    return 'python -m mmlinattn' if program.is_module() else program.NAME


def fail(message: str) -> NoReturn:
    """End the program with one line on stderr and exit code 2."""
    print(f'{prog_name()}: error: {message}', file=sys.stderr)
    sys.exit(2)


def names_package(words: Sequence[str]) -> bool:
    """Return whether the first positional argument is the name of an installed package
    that mim knows, and no file."""
    first = next(
        (
            word
            for before, word in zip(['', *words], words)
            if not word.startswith('-')
            # behind an option is its value
            and (not before.startswith('-') or '=' in before)
        ),
        '',
    )
    if not re.fullmatch(r'[A-Za-z]\w*(-\w+)*', first) or Path(first).exists():
        return False
    for name in (first, f'onedl-{first}'):
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        return True
    spec = find_spec(first) if first.isidentifier() else None
    folders = (spec and spec.submodule_search_locations) or ()  # of a source tree
    return any(Path(folder, '.mim').exists() for folder in folders)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    words = list(sys.argv[1:] if argv is None else argv)
    verb, rest = (words[0], words[1:]) if words else ('--help', [])
    if verb in ('--help', '-h', 'help'):
        print(usage())
        return
    if verb == '--version':
        print(__version__)
        return
    if verb in MIM_VERBS or (verb in SHARED and names_package(rest)):
        run_mim(words)
    if verb not in VERBS:
        near = get_close_matches(verb, [*VERBS, *MIM_VERBS], 1)
        likely = f'did you mean {near[0]}?' if near else f'there are {", ".join(VERBS)}'
        fail(f'no command {verb!r}: {likely}')
    program.rename(verb)
    run(verb, rest)


if __name__ == '__main__':
    # workers that are spawned run the file of a main module without a name, too
    __spec__ = None  # type: ignore[assignment]
    main()
