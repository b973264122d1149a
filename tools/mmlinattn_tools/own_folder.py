"""Folders in which a tool may replace what it wrote itself, and nothing else."""

import json
import os
import shutil
from pathlib import Path


def read_record(folder, name):
    """Reads what a tool has recorded of its folder.

    Args:
        folder (Path): The folder; it need not exist.
        name (str): Of the record's file.

    Returns:
        dict: ``files`` and others; empty if the folder is empty or does not exist.

    Raises:
        FileExistsError: If the folder holds anything else.
    """
    problem = f'{folder} is not an empty folder and was not written by this tool'
    if (folder / name).is_file():
        problem = f'{folder / name} is not the record of this tool'
        try:
            record = json.loads((folder / name).read_bytes())
            if 'files' in record:
                return record
        except (ValueError, TypeError):
            pass
    elif not folder.exists() or not any(folder.iterdir()):
        return {}
    raise FileExistsError(f'{problem}: give another --out')


def write_record(folder, name, **record):
    """Writes the record, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f'.{name}'
    draft.write_text(json.dumps(record))
    draft.replace(folder / name)


def remove(folder, names):
    """Removes files and folders, unless a link leads out of the tool's folder."""
    root = folder.resolve()
    paths = [Path(os.path.normpath(root / name)) for name in names]
    for path in paths:
        if not path.parent.resolve().is_relative_to(root):
            raise FileExistsError(f'{path} is not inside {root}: give another --out')
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
