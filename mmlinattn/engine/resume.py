"""Finds the checkpoint that a training continues from, and checks it."""

import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Optional, Union

from mmengine.config import Config

# MMEngine's default names of the checkpoints of a training
NUMBER = r'\d+'
NUMBERED = r'(?:epoch|iter)_\d+\.pth'


def checkpoint_fault(path: Union[str, Path]) -> Optional[str]:
    """The reason why a checkpoint can't be read, or None if it can.

    The function compares the file with its own checksums, which files of PyTorch before
    1.6 lack. It unpickles nothing, so no code of the file runs.

    Args:
        path (str | Path): Path of a file that ``torch.save`` wrote, or of a folder of
            shards, which is not checked.
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
                return 'it is not a PyTorch checkpoint'
    except zipfile.BadZipFile:
        with path.open('rb') as file:
            start = file.read(2)
        if start == b'PK':
            return 'the file is truncated'
        return None if start[:1] == b'\x80' else 'it is not a PyTorch checkpoint'
    except (EOFError, OSError, NotImplementedError, zlib.error) as error:
        return f'it can not be read: {error}'
    return None


def find_checkpoint(
    work_dir: Union[str, Path],
    out_dir: Optional[str] = None,
    filename_tmpl: Optional[str] = None,
) -> tuple[Optional[str], list[str]]:
    """Finds the newest whole checkpoint of a training.

    MMEngine trusts the file ``last_checkpoint``, which may be lost, or name a file that
    moved or was cut off. Here, it is the first choice, and checkpoints of lower numbers
    follow; those of higher ones may be of another training. Without it, all follow by
    their numbers.

    Args:
        work_dir (str | Path): Folder of the training.
        out_dir (str, optional): Option of the checkpoint hook; checkpoints are in its
            folder with ``work_dir``'s name. Default: they are in ``work_dir``.
        filename_tmpl (str, optional): Option of the checkpoint hook. Checkpoints with
            MMEngine's names are always found.

    Returns:
        tuple[str | None, list[str]]: Path of the checkpoint, or None if there is
            no checkpoint at all; and skipped checkpoints with the reasons.

    Raises:
        ValueError: If there are checkpoints, or ``last_checkpoint`` names one, but
            none of them is whole.
    """
    work_dir = Path(os.path.abspath(work_dir))
    home = Path(os.path.abspath(out_dir), work_dir.name) if out_dir else work_dir
    named, skipped = _named_checkpoint(work_dir, home)
    fixed = re.split(r'\{[^{}]*\}', filename_tmpl or '')
    wanted = re.compile(f'{NUMBERED}|{NUMBER.join(map(re.escape, fixed))}')
    folders = {work_dir, home, named.parent if named else home}
    paths = {
        path
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if path == named or wanted.fullmatch(path.name)
    }
    later = {path for path in paths if named and _number(path) > _number(named)}
    for path in sorted(later):
        skipped.append(f'{path}: last_checkpoint names an earlier one, {named}')
    paths -= later
    for path in sorted(paths, key=lambda x: (x == named, _number(x)), reverse=True):
        fault = checkpoint_fault(path)
        if fault is None:
            return str(path), skipped
        skipped.append(f'{path}: {fault}')
    if skipped:
        raise ValueError(
            f'work_dir={str(work_dir)!r} has no whole checkpoint to resume from: '
            f'{"; ".join(skipped)}. Name one elsewhere with --resume CHECKPOINT, or '
            'start again in another --work-dir'
        )
    return None, skipped


def _named_checkpoint(work_dir: Path, home: Path) -> tuple[Optional[Path], list[str]]:
    """The checkpoint that ``last_checkpoint`` names, and its faults."""
    pointer = work_dir / 'last_checkpoint'
    if not pointer.is_file():
        return None, []
    name = pointer.read_text(errors='replace').strip()
    if not name:
        return None, [f'{pointer}: the file is empty']
    # a copied folder has its own, though the original may still exist
    for path in (home / Path(name).name, Path(os.path.abspath(name))):
        if path.exists():
            return path, []
    return None, [f'{name}, named by {pointer}: there is no such file']


def _number(path: Path) -> int:
    numbers = re.findall(r'\d+', path.stem)
    return int(numbers[-1]) if numbers else -1


def check_resume(checkpoint: Mapping, cfg: Config) -> None:
    """Raises an error for a checkpoint that a training can't resume from.

    Args:
        checkpoint (dict): The content of the file.
        cfg (Config): The config of the run.

    Raises:
        ValueError: If there is no training state, or the run is already over at its
            iteration.
    """
    if 'optimizer' not in checkpoint:
        raise ValueError(
            'it has no training state: start from its weights with '
            f'--cfg-options load_from={cfg.load_from}'
        )
    meta = checkpoint.get('meta')
    meta = meta if isinstance(meta, Mapping) else {}
    for key in ('epoch', 'iter'):
        place, end = meta.get(key), cfg.get('train_cfg', {}).get(f'max_{key}s')
        if type(place) is not int or place < 0:
            raise ValueError(f'its meta.{key} must be a number from 0, got {place!r}')
        if isinstance(end, int) and place > end:
            raise ValueError(
                f'it is at {key} {place}, and the training ends at '
                f'train_cfg.max_{key}s={end}'
            )
