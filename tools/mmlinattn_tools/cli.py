"""What the command-line tools share."""

import argparse
import os
import os.path as osp
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Optional

from mmengine.config import Config, DictAction

from mmlinattn.utils.config import load_config
from mmlinattn.utils.files import is_marked

# What our checks raise; other errors are not the user's.
INPUT_ERRORS = (ImportError, KeyError, OSError, ValueError)


class Parser(argparse.ArgumentParser):
    """The argument parser of every tool.

    It reports an error in one line. It takes no abbreviations, because a misspelled
    option could be the abbreviation of another one. With ``--debug``,
    :func:`exit_with` shows the traceback. The description is printed as it is written.

    Args:
        **kwargs: Arguments of :class:`argparse.ArgumentParser`.
    """

    debug = False

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault('formatter_class', argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **kwargs)
        self.add_argument(
            '--debug', action='store_true', help='show the traceback of an error'
        )

    def parse_known_args(
        self, args: Optional[Sequence[str]] = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parses as argparse does, and remembers ``--debug``."""
        found, rest = super().parse_known_args(args, namespace)
        Parser.debug = found.debug
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Ends the tool with one line on stderr and exit code 2."""
        self.exit(2, f'{self.prog}: error: {one_line(message)}\n')


def one_line(message: object) -> str:
    """A message without line breaks."""
    return ' '.join(str(message).split())


def exit_with(error: BaseException) -> NoReturn:
    """Exits with one line that says what is wrong with the input.

    The line goes to stderr and the exit code is 2; with ``--debug`` the traceback
    comes before it.

    Args:
        error (Exception): The exception that the input caused.
    """
    if Parser.debug:
        traceback.print_exception(type(error), error, error.__traceback__)
    # str() of a KeyError has quotes around the message
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    text = one_line(message) or type(error).__name__
    print(f'{osp.basename(sys.argv[0])}: error: {text}', file=sys.stderr)
    sys.exit(2)


@contextmanager
def errors_in_one_line(*kinds: type[BaseException]) -> Iterator[None]:
    """Context that calls :func:`exit_with` on some errors.

    Args:
        *kinds (type): Classes of exceptions that mean bad input.
    """
    try:
        yield
    except kinds as error:
        exit_with(error)


def threads(text: str) -> int:
    """Type of an argument that is the number of the CPU's threads.

    Raises:
        argparse.ArgumentTypeError: If it is none, or more than any machine has.
    """
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f'must be 1 to 1024, got {text!r}')
    return int(text)


def number(kind: type, least: float, most: float) -> Callable[[str], Any]:
    """Type of an argument that is an int or a float from ``least`` to ``most``."""

    def read(text: str) -> Any:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f'must be {least} to {most}, got {text}')
        return value

    read.__name__ = kind.__name__
    return read


def output_file(text: str) -> Path:
    """Type of an argument that names a file to write.

    Args:
        text (str): The argument.

    Returns:
        Path: The file, in a folder that exists or can be made.

    Raises:
        argparse.ArgumentTypeError: If it can't be written.
    """
    path = _output(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f'{text!r} is a folder, not a file')
    return path


def output_folder(text: str) -> Path:
    """Type of an argument that names a folder to write to, as :func:`output_file`."""
    path = _output(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f'{text!r} is a file, not a folder')
    return path


def _output(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError(f'{text!r} is not a path')
    path = Path(text).expanduser()
    try:
        there = next(x for x in (path, *path.absolute().parents) if x.exists())
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if there != path and not there.is_dir():
        raise argparse.ArgumentTypeError(
            f'{text!r} can not be written: {str(there)!r} is a file, not a folder'
        )
    if not os.access(there, os.W_OK):
        raise argparse.ArgumentTypeError(
            f'{text!r} can not be written: no permission for {str(there)!r}'
        )
    return path


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Adds the option that :func:`protect` asks for."""
    parser.add_argument(
        '--overwrite', action='store_true', help='replace files that exist'
    )


def protect(args: argparse.Namespace, *paths: Path) -> None:
    """Ends the tool with one line if it would replace what others wrote.

    Figures and their numbers say that they are from here, so they can be drawn again.

    Args:
        args (argparse.Namespace): With ``overwrite``.
        *paths (Path): Files that the tool will write, and folders for files of any
            name.
    """
    for path in [] if args.overwrite else paths:
        if path.is_dir():
            if any(path.iterdir()):
                exit_with(
                    FileExistsError(
                        f'{path} is not empty: give --overwrite to replace files in it'
                    )
                )
        elif path.exists() and not is_marked(path):
            exit_with(FileExistsError(f'{path} exists: give --overwrite to replace it'))


def run_parser(description: str) -> Parser:
    """Arguments that training and testing have in common.

    Args:
        description (str): What the tool does.

    Returns:
        Parser: The parser, open for more arguments.
    """
    parser = Parser(description=description)
    parser.add_argument('config', help='path of the config')
    parser.add_argument(
        '--work-dir',
        help='folder for logs, checkpoints and results; default: '
        './work_dirs/<name of the config>',
    )
    add_cfg_options(parser, 'train_dataloader.batch_size=4')
    parser.add_argument(
        '--allow-mismatch',
        action='store_true',
        help='go on where a checkpoint does not cover the model: say what differs, '
        'and load what fits',
    )
    parser.add_argument(
        '--trust',
        action='store_true',
        help='unpickle all that checkpoints hold, whatever its classes; this can run '
        'any code that is in them',
    )
    parser.add_argument(
        '--no-preflight',
        action='store_true',
        help='begin at once: do not build the parts of the run, read the first '
        'samples and compare checkpoints with the model beforehand',
    )
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='how processes were started; default: none, a single one',
    )
    # torch's launcher passes it, MMEngine reads the environment
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS
    )
    return parser


def is_first_process() -> bool:
    """Whether this process is the only one of a run or its first, by its launcher."""
    ranks = map(os.environ.get, ('RANK', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID'))
    return next(filter(None, ranks), '0') == '0'


def tell(text: str) -> None:
    """Prints a line on stderr, in the first process of a run only."""
    if is_first_process():
        print(f'{osp.basename(sys.argv[0])}: {one_line(text)}', file=sys.stderr)


def warn(text: str) -> None:
    """Prints a line about what may be wrong, as :func:`tell`."""
    tell(f'warning: {text}')


def add_cfg_options(parser: argparse.ArgumentParser, example: str) -> None:
    """Adds the option that overrides entries of a config.

    Args:
        parser (argparse.ArgumentParser): The parser.
        example (str): An override that makes sense for the tool.
    """
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        type=_key_value,
        action=DictAction,
        metavar='KEY=VALUE',
        help=f'options of the config to override, such as {example}; lists as '
        'key="[a,b]" or key=a,b, nested ones as key="[(a,b),(c,d)]", an entry '
        'of a list as key.0',
    )


def _key_value(text: str) -> str:
    if not text.partition('=')[1]:
        raise argparse.ArgumentTypeError(f'{text!r} is not KEY=VALUE')
    return text


def run_config(args: argparse.Namespace) -> Config:
    """Reads the config of a run from its arguments.

    Args:
        args (argparse.Namespace): Arguments of :func:`run_parser`.

    Returns:
        Config: The config.

    Raises:
        FileNotFoundError: If the config or one that it inherits is missing.
        KeyError: If an override is misspelled.
        ValueError: If the config can't be read.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    if args.trust:
        os.environ['MMLINATTN_TRUST'] = '1'
    cfg = load_config(args.config, args.cfg_options, warn)
    cfg.launcher = args.launcher
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        name = osp.splitext(osp.basename(args.config))[0]
        cfg.work_dir = osp.join('work_dirs', name)
    return cfg


def begin_run(cfg: Config) -> None:
    """Makes the folder of a run; processes that have no GPUs join on CPUs.

    Args:
        cfg (Config): The config, of :func:`run_config`. See
            :func:`mmlinattn.utils.distributed.run_on_cpus` for what is set in it.

    Raises:
        OSError: If the folder can't be made.
        ValueError: If the launcher does not work here.
    """
    from mmlinattn.utils.distributed import (
        run_on_cpus,  # it imports torch, which few tools need
    )

    run_on_cpus(cfg)
    try:
        os.makedirs(cfg.work_dir, exist_ok=True)
        tempfile.TemporaryFile(dir=cfg.work_dir).close()
    except OSError as error:
        raise OSError(
            f'work_dir={cfg.work_dir!r} can not be written: {error}'
        ) from error
