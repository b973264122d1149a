"""Finds the checkpoint that a training continues from."""

import os
import re
import zipfile
import zlib
from pathlib import Path

# how MMEngine's CheckpointHook names the checkpoints of a training by default
NUMBERED = re.compile(r'(?:epoch|iter)_(\d+)\.pth')


def checkpoint_fault(path):
    """The reason why a checkpoint can't be read.

    The function compares each byte of the file with the file's checksums. It
    unpickles nothing, so no code of the file runs.

    Args:
        path (str | Path): Path of a file that ``torch.save`` wrote, or of a folder of
            shards, which is not checked.

    Returns:
        str | None: What is wrong, or None if the checkpoint is whole. The format of
        PyTorch before 1.6 has no checksums: its files count as whole.
    """
    path = Path(path)
    if path.is_dir():
        return None
    if not path.is_file():
        return 'there is no such file'
    if not path.stat().st_size:
        return 'the file is empty'
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
            if broken:
                return f'its entry {broken} is damaged'
            if not any(name.endswith('/data.pkl') for name in archive.namelist()):
                return 'it is no checkpoint of PyTorch'
    except zipfile.BadZipFile:
        with path.open('rb') as file:
            start = file.read(2)
        if start == b'PK':
            return 'the file is truncated'
        return None if start[:1] == b'\x80' else 'it is no checkpoint of PyTorch'
    except (EOFError, OSError, NotImplementedError, zlib.error) as error:
        return f'it can not be read: {error}'
    return None


def find_checkpoint(work_dir):
    """Finds the newest whole checkpoint of a training.

    MMEngine trusts the file ``last_checkpoint``. If the file is lost, empty or names
    a checkpoint that moved, MMEngine starts again and overwrites what is there. If it
    names a checkpoint that was cut off while it was written, MMEngine fails. This
    function takes the file as a hint. It checks the checkpoints themselves, those of
    the most epochs or iterations first. It skips a checkpoint with more epochs or
    iterations that is older than the one that ``last_checkpoint`` names: that
    checkpoint belongs to another training.

    Args:
        work_dir (str | Path): Folder of the training.

    Returns:
        tuple[str | None, list[str]]: Path of the checkpoint, or None if there is
        no checkpoint at all; and what was skipped, with the reasons.

    Raises:
        ValueError: If there are checkpoints, or ``last_checkpoint`` names one, but
            none of them is whole.
    """
    work_dir = Path(os.path.abspath(work_dir))
    named, skipped = _named_checkpoint(work_dir)
    folders = {work_dir, named.parent} if named else {work_dir}
    found = {
        path: int(match[1])
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if (match := NUMBERED.fullmatch(path.name))
    }
    if named:
        number = found.setdefault(named, _last_number(named))
        written = named.stat().st_mtime
        for path in [path for path in found if found[path] > number]:
            if path.stat().st_mtime < written:
                skipped.append(f'{path}: it is older than {named}, the last one')
                del found[path]
    for path in sorted(found, key=lambda path: (found[path], path), reverse=True):
        fault = checkpoint_fault(path)
        if fault is None:
            return str(path), skipped
        skipped.append(f'{path}: {fault}')
    if found or skipped:
        raise ValueError(
            f'work_dir={str(work_dir)!r} has no whole checkpoint to go on from: '
            f'{"; ".join(skipped)}. Name one elsewhere with --resume CHECKPOINT, or '
            'train anew in another --work-dir'
        )
    return None, skipped


def _named_checkpoint(work_dir):
    """The checkpoint that ``last_checkpoint`` names, or None; and why it is None."""
    pointer = work_dir / 'last_checkpoint'
    if not pointer.is_file():
        return None, []
    name = pointer.read_text(errors='replace').strip()
    if not name:
        return None, [f'{pointer}: the file is empty']
    # the folder may have been moved as a whole
    for path in (Path(os.path.abspath(name)), work_dir / Path(name).name):
        if path.exists():
            return path, []
    return None, [f'{name}, named by {pointer}: there is no such file']


def _last_number(path):
    numbers = re.findall(r'\d+', path.stem)
    return int(numbers[-1]) if numbers else -1
