"""What the command-line tools share."""

import argparse
import os
import os.path as osp
import sys

from mmengine.config import DictAction

from .config import load_config


def run_parser(description):
    """Arguments that training and testing have in common.

    Args:
        description (str): What the tool does.

    Returns:
        argparse.ArgumentParser: The parser, open for more arguments.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('config', help='path of the config')
    parser.add_argument(
        '--work-dir',
        help='folder for logs, checkpoints and results; default: '
        './work_dirs/<name of the config>',
    )
    add_cfg_options(parser, 'train_dataloader.batch_size=4')
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


def add_cfg_options(parser, example):
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


def _key_value(text):
    if not text.partition('=')[1]:
        raise argparse.ArgumentTypeError(f'{text!r} is not KEY=VALUE')
    return text


def run_config(args):
    """The config of a run, as its arguments say.

    Args:
        args (argparse.Namespace): Arguments of :func:`run_parser`.

    Returns:
        Config: The config.

    Raises:
        FileNotFoundError: If the config or one that it inherits is missing.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = load_config(args.config, args.cfg_options)
    cfg.launcher = args.launcher
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        name = osp.splitext(osp.basename(args.config))[0]
        cfg.work_dir = osp.join('work_dirs', name)
    return cfg


def exit_with(error):
    """Ends a tool with one line that says what is wrong with its input.

    Args:
        error (Exception): What was raised on the input.
    """
    message = error.args[0] if isinstance(error, KeyError) else error
    sys.exit(f'{osp.basename(sys.argv[0])}: error: {message}')
