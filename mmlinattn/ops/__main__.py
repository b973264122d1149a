"""Adds operators to an mmcv without its compiled part, also for programs that import
mmcv.ops without us, such as `mim train mmdet`; tells what is wrong with another one."""

import argparse
import sys

from mmlinattn.ops.installed import SOURCE, describe, find, problem


def run(install: bool, remove: bool) -> str:
    """Do what the command is for, and return a line about what there is.

    Raises:
        ImportError: If there is no mmcv, or one that operators do not help.
        OSError: If ``_ext.py`` is of others, or must not be written.
    """
    installed = find()
    if installed.source and not installed.is_ours:
        raise FileExistsError(
            f'{installed.source} is not of mmlinattn, and was left as is'
        )
    if remove and installed.source:
        installed.source.unlink()
    fault = problem(installed)
    if fault:
        raise ImportError(fault)
    if install and installed.folder and not installed.compiled:
        text = SOURCE.read_text(encoding='utf-8')
        draft = installed.folder / f'{SOURCE.name}.part'
        draft.write_text(text, encoding='utf-8')
        draft.replace(installed.folder / SOURCE.name)  # a kill leaves no half of it
    return describe(find() if install or remove else installed)


def main() -> None:
    parser = argparse.ArgumentParser('python -m mmlinattn.ops', description=__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument('--install', action='store_true', help='write mmcv/_ext.py')
    group.add_argument('--remove', action='store_true', help='remove it')
    text = 'say which mmcv there is, and the command that mends it; exit code 2 if it '
    text += 'cannot be used'
    group.add_argument('--status', action='store_true', help=text)
    args = parser.parse_args()
    try:
        print(run(args.install, args.remove))
    except (ImportError, OSError) as error:
        print(f'{parser.prog}: error: {error}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
