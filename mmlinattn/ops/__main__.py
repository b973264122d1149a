"""Adds operators to an mmcv without its compiled part, also for programs that import
mmcv.ops before mmlinattn, such as `mim train mmdet`."""

import argparse
import importlib.util
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

SOURCE = Path(__file__).with_name('_ext.py')


def run(install: bool, remove: bool) -> str:
    """Do what the command is for, and return a line about what there is.

    Raises:
        OSError: If there is no mmcv, or its folder or ``_ext.py`` must not be written.
    """
    spec = importlib.util.find_spec('mmcv')
    if spec is None or spec.origin is None:
        raise FileNotFoundError('there is no mmcv: pip install mmcv-lite')
    folder = Path(spec.origin).parent
    file, source = folder / '_ext.py', SOURCE.read_text(encoding='utf-8')
    first_line = source.partition('\n')[0]
    if file.exists() and not file.read_text(encoding='utf-8').startswith(first_line):
        raise FileExistsError(f'{file} is not of mmlinattn, and was left as it is')
    compiled = any((folder / f'_ext{suffix}').exists() for suffix in EXTENSION_SUFFIXES)
    if remove:
        file.unlink(missing_ok=True)
    elif install and not compiled:
        file.write_text(source, encoding='utf-8')
    if compiled:
        return f'the mmcv in {folder} has its compiled part, and uses it'
    if file.exists():
        return f'the mmcv in {folder} has the operators of mmlinattn'
    return f'the mmcv in {folder} has operators only after `import mmlinattn`'


def main() -> None:
    parser = argparse.ArgumentParser('python -m mmlinattn.ops', description=__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument('--install', action='store_true', help='write mmcv/_ext.py')
    group.add_argument('--remove', action='store_true', help='remove it')
    group.add_argument('--status', action='store_true', help='only say what there is')
    args = parser.parse_args()
    try:
        print(run(args.install, args.remove))
    except OSError as error:
        print(f'{parser.prog}: error: {error}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
