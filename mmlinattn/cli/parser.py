"""Arguments of the commands, and errors in one line."""

import argparse
import os
import re
import sys
import traceback
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Optional

from mmengine.config import DictAction

from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.files import MARK

from . import program

# Errors of our checks; other errors are not the user's.
INPUT_ERRORS = (ImportError, KeyError, OSError, ValueError)


class Parser(argparse.ArgumentParser):
    """The argument parser of every command.

    It reports an error in one line. It takes no abbreviations, because a misspelled
    option could be the abbreviation of another one. The description is printed
    unchanged.

    Args:
        replaced (dict, optional): By option that other scripts have, what to type here
            in its place.
        **kwargs: Of :class:`argparse.ArgumentParser`.
    """

    def __init__(
        self, replaced: Optional[dict[str, str]] = None, **kwargs: Any
    ) -> None:
        kind = argparse.RawDescriptionHelpFormatter
        kwargs.setdefault('prog', program.name())
        super().__init__(allow_abbrev=False, formatter_class=kind, **kwargs)
        self.replaced = replaced or {}
        self.add_argument(
            '--debug', action='store_true', help='show the traceback of an error'
        )

    def error(self, message: str) -> NoReturn:
        """End the tool with one line on stderr and exit code 2."""
        for word in message.split():
            option = word.partition('=')[0]
            if option in self.replaced:
                message += f'; in place of {option}: {self.replaced[option]}'
        self.exit(2, f'{self.prog}: error: {one_line(message)}\n')


def one_line(message: object) -> str:
    """Return a message without line breaks."""
    return ' '.join(str(message).split())


@contextmanager
def errors_in_one_line(*kinds: type[BaseException]) -> Iterator[None]:
    """End the tool with code 2 and one line on stderr for exceptions that mean wrong
    input; with ``--debug``, the traceback comes before it. A fault of ours keeps its
    traceback, after a line that asks for a report."""
    try:
        yield
    except Exception as error:
        if is_own_fault(error):
            print(
                f'{program.name()}: this is a fault of mmlinattn: please '
                'report the lines below where it comes from (pip show mmlinattn)',
                file=sys.stderr,
            )
            raise
        if not isinstance(error, kinds):
            raise
        if '--debug' in sys.argv:
            traceback.print_exc()
        # str() of a KeyError has quotes around the message
        is_key = isinstance(error, KeyError) and error.args
        text = one_line(error.args[0] if is_key else error) or type(error).__name__
        print(f'{program.name()}: error: {text}', file=sys.stderr)
        sys.exit(2)


@contextmanager
def error_of(place: str) -> Iterator[None]:
    """Put a place, with what separates them, before an error in it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f'{place}{error}') from error


def number(kind: type, least: float, most: float) -> Callable[[str], Any]:
    """Type of an argument that is an int or a float from ``least`` to ``most``."""

    def read(text: str) -> Any:
        value = kind(text)
        if not least <= value <= most:
            raise ArgumentTypeError(f'must be {least} to {most}, got {text}')
        return value

    read.__name__ = kind.__name__
    return read


def output_file(text: str, is_folder: bool = False) -> Path:
    """Type of an argument that names a file to write, which can be written."""
    path = Path(text).expanduser()
    if path.exists() and path.is_dir() != is_folder:
        kinds = ('a folder, not a file', 'a file, not a folder')
        raise ArgumentTypeError(f'{text!r} is {kinds[is_folder]}')
    there = next(
        folder for folder in (path, *path.absolute().parents) if folder.exists()
    )
    if (there == path or there.is_dir()) and os.access(there, os.W_OK):
        return path
    raise ArgumentTypeError(
        f'{text!r} can not be written: {str(there)!r} is a file, or you lack '
        'permission for it'
    )


# type of an argument that names a folder to write to
output_folder = partial(output_file, is_folder=True)


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add the option that :func:`protect` asks for."""
    parser.add_argument(
        '--overwrite', action='store_true', help='replace files that exist'
    )


def protect(args: argparse.Namespace, *paths: Path) -> None:
    """End the program with one line if it would replace other files: see
    :func:`check_free`."""
    with errors_in_one_line(FileExistsError):
        check_free(args, *paths)


def check_free(args: argparse.Namespace, *paths: Path) -> None:
    """Raise a FileExistsError for a file of others or a folder that is not empty,
    unless ``args.overwrite`` is set.

    Our figures and their numbers are marked, so they can be drawn again. A folder among
    the paths is for files of any name.
    """
    for path in [] if args.overwrite else paths:
        if path.is_dir() and any(path.iterdir()):
            text = 'is not empty: give --overwrite to replace files in it'
            raise FileExistsError(f'{path} {text}')
        if path.is_file():
            with path.open('rb') as file:
                if MARK.encode() not in file.read(4096):
                    text = f'{path} exists: give --overwrite to replace it'
                    raise FileExistsError(text)


def check_claim(folder: Path, record: str) -> None:
    """Raise a FileExistsError for a folder that holds others' files, without the file
    that marks it as a tool's own."""
    if (folder / record).is_file() or not folder.is_dir():
        return
    if any(folder.iterdir()):
        raise FileExistsError(
            f'{folder} is not an empty folder and was not written by this tool: give '
            'another --out'
        )


def claim_folder(folder: Path, record: str) -> None:
    """Mark a folder as a tool's own by a file in it, unless it holds others' files."""
    check_claim(folder, record)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / record).write_text('{}')


class KeepBlanks(DictAction):
    """MMEngine's action for options, without removing blanks inside of words."""

    @staticmethod
    def _parse_iterable(val: str) -> Any:
        inner = r'(?<=[^\s,()\[\]]) +(?=[^\s,()\[\]])'
        marked = re.sub(inner, lambda blanks: '\0' * len(blanks[0]), val)
        return _with_blanks(DictAction._parse_iterable(marked))


def _with_blanks(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_with_blanks, value))
    return value.replace('\0', ' ') if isinstance(value, str) else value


def add_cfg_options(parser: argparse.ArgumentParser, example: str) -> None:
    """Add the option that overrides entries of a config, with an example of one."""
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        type=key_value,
        action=KeepBlanks,
        metavar='KEY=VALUE',
        help=f'options of the config to override, such as {example}; lists as '
        'key="[a,b]" or key=a,b, nested ones as key="[(a,b),(c,d)]", an entry '
        'of a list as key.0',
    )


def key_value(text: str) -> str:
    """Type of an argument that is KEY=VALUE, or KEY = VALUE in quotes."""
    key, sign, value = text.partition('=')
    if not sign or not key.strip():
        raise ArgumentTypeError(f'{text!r} is not KEY=VALUE')
    return text if key == key.strip() else f'{key.strip()}={value.strip()}'
