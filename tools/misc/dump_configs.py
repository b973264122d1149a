"""Writes resolved configs to files, and compares two such dumps.

A resolved config has all of its bases merged; it is what trains. To refactor
configs, dump them before and after, and compare:

    python tools/misc/dump_configs.py write before
    python tools/misc/dump_configs.py write after
    python tools/misc/dump_configs.py compare before after

The comparison is by value, tuple or list included, and ignores the order of keys. A
difference that several configs share is shown once. The exit code of a comparison is 0
if the dumps are alike, 1 if they differ.
"""

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path
from pprint import pformat

from rich.console import Console
from rich.progress import track

from mmlinattn.utils import bases_read_once, load_config

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, exit_with

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'
NOTHING = object()  # the value of a key that is not there
NUM_NAMES = 5


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    commands = parser.add_subparsers(dest='command', metavar='COMMAND', required=True)
    write = commands.add_parser('write', help='write a dump of all configs of a folder')
    write.add_argument(
        'out', metavar='OUT', type=Path, help='new or empty folder for the dump'
    )
    write.add_argument(
        '--configs',
        type=Path,
        default=CONFIGS,
        metavar='DIR',
        help='folder of the configs; what lies in a folder _base_ is left out. '
        'Default: configs of this repository',
    )
    compare = commands.add_parser('compare', help='compare two dumps')
    compare.add_argument('before', metavar='BEFORE', type=Path, help='folder of a dump')
    compare.add_argument('after', metavar='AFTER', type=Path, help='folder of another')
    compare.add_argument(
        '--rename',
        nargs=2,
        action='append',
        default=[],
        metavar=('PATTERN', 'REPLACEMENT'),
        help='regular expression in paths of BEFORE and what became of it, such as '
        r"'deit(.*)_fpn_' 'deit\1_sfp_'",
    )
    return parser.parse_args(argv)


def write_dump(configs, out):
    """Writes one file for every config.

    Args:
        configs (Path): Folder of the configs.
        out (Path): New or empty folder for the dump. It gets the configs' folders
            and names.

    Returns:
        int: Number of configs.

    Raises:
        FileNotFoundError: If ``configs`` has no configs.
        ValueError: If ``out`` is no folder or has something in it, or a config
            can't be resolved.
    """
    paths = sorted(
        path
        for path in configs.rglob('*.py')
        if '_base_' not in path.relative_to(configs).parts
    )
    if not paths:
        raise FileNotFoundError(f'--configs={str(configs)!r}: there are no configs')
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ValueError(f'OUT={str(out)!r} must be a new or an empty folder')
    for path in track(paths, 'configs', console=Console(stderr=True)):
        try:
            resolved = load_config(str(path)).to_dict()
        except Exception as error:
            raise ValueError(f'{path}: {type(error).__name__}: {error}') from error
        file = out / path.relative_to(configs).with_suffix('.txt')
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(pformat(resolved) + '\n', encoding='utf-8')
    return len(paths)


def read_dump(name, folder):
    """Reads a dump.

    Args:
        name (str): What the folder was given as.
        folder (Path): The folder.

    Returns:
        dict[str, dict]: Resolved configs by their path in the folder.

    Raises:
        FileNotFoundError: If the folder has no dump.
        ValueError: If :func:`write_dump` did not write one of the files.
    """
    files = sorted(folder.rglob('*.txt'))
    if not files:
        raise FileNotFoundError(f'{name}={str(folder)!r}: there is no dump')
    dump = {}
    for file in track(files, name.lower(), console=Console(stderr=True)):
        try:
            config = ast.literal_eval(file.read_text(encoding='utf-8'))
        except (SyntaxError, ValueError) as error:
            raise ValueError(f'{name}: {file} is no file of a dump: {error}') from error
        dump[file.relative_to(folder).with_suffix('').as_posix()] = config
    return dump


def rename(dump, renames):
    """A dump under new names.

    Args:
        dump (dict[str, dict]): Resolved configs by path.
        renames (Sequence[tuple[str, str]]): Patterns and replacements.

    Returns:
        dict[str, dict]: The same configs.

    Raises:
        ValueError: If a pattern is not a regular expression, or two configs get the
            same name.
    """
    renamed = {}
    for name, config in dump.items():
        for pattern, replacement in renames:
            try:
                name = re.sub(pattern, replacement, name)
            except re.error as error:
                raise ValueError(
                    f'--rename {pattern!r} {replacement!r} is no regular expression '
                    f'with a replacement: {error}'
                ) from error
        if name in renamed:
            raise ValueError(f'--rename gives several configs the name {name!r}')
        renamed[name] = config
    return renamed


def differences(before, after, key=''):
    """What differs between two values of a config.

    Args:
        before, after: The values.
        key (str): Dotted key of both.

    Yields:
        tuple: Dotted key, value before and value after; ``NOTHING`` where there is
        none.
    """
    prefix = f'{key}.' if key else ''
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys(), key=str):
            yield from differences(
                before.get(name, NOTHING), after.get(name, NOTHING), f'{prefix}{name}'
            )
    elif type(before) is type(after) is list and len(before) == len(after):
        for i, pair in enumerate(zip(before, after)):
            yield from differences(*pair, f'{prefix}{i}')
    elif type(before) is not type(after) or before != after:
        yield key, before, after


def compare_dumps(before, after):
    """Differences of two dumps, and which configs have them.

    Args:
        before, after (dict[str, dict]): Resolved configs by path.

    Returns:
        dict[str, list[str]]: Paths of configs by the text of a difference.
    """
    found = defaultdict(list)
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            found['- the whole config'].append(name)
        elif name not in before:
            found['+ the whole config'].append(name)
        else:
            for key, old, new in differences(before[name], after[name]):
                lines = [f'  {key}']
                lines += [
                    f'{sign} {value!r}'
                    for sign, value in (('-', old), ('+', new))
                    if value is not NOTHING
                ]
                found['\n'.join(lines)].append(name)
    return found


def report(found):
    """The differences as text, those of the most configs first."""
    parts = []
    for text, names in sorted(found.items(), key=lambda item: -len(item[1])):
        shown = ', '.join(names[:NUM_NAMES])
        more = f', and {len(names) - NUM_NAMES} more' if len(names) > NUM_NAMES else ''
        parts.append(f'{text}\n  in {len(names)}: {shown}{more}')
    return '\n\n'.join(parts)


def main():
    args = parse_args()
    try:
        if args.command == 'write':
            with bases_read_once():
                number = write_dump(args.configs, args.out)
            print(f'{number} configs: {args.out}')
            return
        before = rename(read_dump('BEFORE', args.before), args.rename)
        after = read_dump('AFTER', args.after)
    except (OSError, ValueError) as error:
        exit_with(error)
    found = compare_dumps(before, after)
    if found:
        print(report(found))
        sys.exit(1)
    print(f'{len(after)} configs, all alike')


if __name__ == '__main__':
    main()
