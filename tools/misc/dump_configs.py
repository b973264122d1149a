"""Writes resolved configs to files, and compares two such dumps.

A resolved config has all of its bases merged; it is what trains. To refactor
configs, dump them before and after, and compare:

    python tools/misc/dump_configs.py write before
    python tools/misc/dump_configs.py write after
    python tools/misc/dump_configs.py compare before after

A file has one line for each value, such as model.backbone.arch = 'tiny'. The comparison
ignores the order of keys, but not whether a value is a tuple or a list. A difference
that several configs share is shown once. The exit code of a comparison is 0 if the
dumps are alike, 1 if they differ.
"""

import sys
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.progress import track

from mmlinattn.utils import bases_read_once, load_config

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, errors_in_one_line

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'
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
        help='folder of the configs; those in a folder _base_ are left out. '
        'Default: configs of this repository',
    )
    compare = commands.add_parser('compare', help='compare two dumps')
    compare.add_argument('before', metavar='BEFORE', type=Path, help='folder of a dump')
    compare.add_argument('after', metavar='AFTER', type=Path, help='folder of another')
    return parser.parse_args(argv)


def lines_of(value, key=''):
    """One line for each value of a config that is no filled dict or list."""
    if value and isinstance(value, (dict, list)):
        children = value if isinstance(value, dict) else dict(enumerate(value))
        for name in sorted(children, key=str):
            yield from lines_of(children[name], f'{key}.{name}' if key else str(name))
    else:
        yield f'{key} = {value!r}'


def write_dump(configs, out):
    """Writes one file for every config, and returns their number."""
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
            lines = lines_of(load_config(str(path)).to_dict())
        except Exception as error:
            raise ValueError(f'{path}: {type(error).__name__}: {error}') from error
        file = out / path.relative_to(configs).with_suffix('.txt')
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return len(paths)


def read_dump(name, folder):
    """Values as text by key, by the path of their config in the folder."""
    dump = {}
    for file in folder.rglob('*.txt'):
        lines = file.read_text(encoding='utf-8').splitlines()
        if not all(' = ' in line for line in lines):
            raise ValueError(f'{name}: {file} is no file of a dump')
        path = file.relative_to(folder).with_suffix('').as_posix()
        dump[path] = dict(line.split(' = ', 1) for line in lines)
    if not dump:
        raise FileNotFoundError(f'{name}={str(folder)!r}: there is no dump')
    return dump


def compare_dumps(before, after):
    """What differs, as text, and which configs have it; the most frequent first."""
    found = defaultdict(list)
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            found['- the whole config'].append(name)
        elif name not in before:
            found['+ the whole config'].append(name)
        else:
            old, new = before[name], after[name]
            for key in sorted({*old, *new}):
                if old.get(key) != new.get(key):
                    lines = [f'- {key} = {old[key]}'] if key in old else []
                    lines += [f'+ {key} = {new[key]}'] if key in new else []
                    found['\n'.join(lines)].append(name)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def run(args):
    if args.command == 'write':
        with bases_read_once():
            print(f'{write_dump(args.configs, args.out)} configs: {args.out}')
        return True
    after = read_dump('AFTER', args.after)
    found = compare_dumps(read_dump('BEFORE', args.before), after)
    for text, names in found:
        shown = ', '.join(names[:NUM_NAMES])
        more = f', and {len(names) - NUM_NAMES} more' if len(names) > NUM_NAMES else ''
        print(f'{text}\n  in {len(names)}: {shown}{more}\n')
    if not found:
        print(f'{len(after)} configs, all alike')
    return not found


def main(argv=None):
    args = parse_args(argv)
    with errors_in_one_line(OSError, ValueError):
        is_right = run(args)
    if not is_right:
        sys.exit(1)


if __name__ == '__main__':
    main()
