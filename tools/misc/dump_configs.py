"""Write resolved configs to files.

A resolved config has all of its bases merged. A file has one line for each value, such
as model.backbone.arch = 'tiny', sorted by key. To refactor configs, dump them before
and after, and compare:

    python tools/misc/dump_configs.py before
    python tools/misc/dump_configs.py after
    diff -r before after
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, errors_in_one_line, output_folder

# isort: split
from rich.progress import track

from mmlinattn.utils import load_config

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'


def lines_of(value, key=''):
    """One line for each value of a config, except filled dicts and lists."""
    if value and isinstance(value, (dict, list)):
        children = value if isinstance(value, dict) else dict(enumerate(value))
        for name in sorted(children, key=str):
            yield from lines_of(children[name], f'{key}.{name}' if key else str(name))
    else:
        yield f'{key} = {value!r}'


def main(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument('out', metavar='OUT', type=output_folder, help='folder to fill')
    args = parser.parse_args(argv)
    if args.out.is_dir() and any(args.out.iterdir()):
        parser.error(f'{args.out} is not empty')
    paths = [x for x in sorted(CONFIGS.rglob('*.py')) if '_base_' not in x.parts]
    with errors_in_one_line(OSError, ValueError):
        for path in track(paths, 'configs'):
            lines = lines_of(load_config(str(path)).to_dict())
            file = args.out / path.relative_to(CONFIGS).with_suffix('.txt')
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text('\n'.join(lines) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
