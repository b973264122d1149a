"""Finds the checkpoint that a training continues from, and checks it."""

import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Optional, Union

from mmengine.config import Config


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
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
            return f'its entry {damaged} is damaged' if damaged else None
    except (zipfile.BadZipFile, EOFError, OSError, zlib.error):
        with path.open('rb') as file:
            first = file.read(1)
        if first == b'\x80':  # a pickle, as old versions wrote it
            return None
        return 'the file is cut off' if first else 'the file is empty'


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
    template = re.sub(r'\{[^{}]*\}', '*', filename_tmpl or 'epoch_*.pth')
    found = {
        path
        for pattern in ('epoch_*.pth', 'iter_*.pth', template)
        for path in home.glob(pattern)
    }
    pointer, skipped = work_dir / 'last_checkpoint', []
    named = pointer.read_text(errors='replace').strip() if pointer.is_file() else ''
    if named:
        # a copied folder has its own, though the original may still exist
        last = home / Path(named).name
        later = {path for path in found if number_of(path) > number_of(last)}
        skipped += [f'{path}: last_checkpoint names {last.name}' for path in later]
        found = {last, *found} - later
    for path in sorted(found, key=number_of, reverse=True):
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


def number_of(path: Path) -> int:
    """The number of the epoch or the iteration in a checkpoint's name, or -1."""
    return int((re.findall(r'\d+', path.stem) or [-1])[-1])


def check_resume(checkpoint: Mapping, cfg: Config) -> None:
    """Raises an error for a checkpoint that a training can't resume from.

    Args:
        checkpoint (dict): The content of the file.
        cfg (Config): The config of the run.

    Raises:
        ValueError: If there is no training state, or the run is already over at its
            iteration.
    """
    if 'optimizer' not in checkpoint or not isinstance(checkpoint.get('meta'), Mapping):
        raise ValueError(
            'it has no training state: start from its weights with '
            f'--cfg-options load_from={cfg.load_from}'
        )
    for key in ('epoch', 'iter'):
        place, end = checkpoint['meta'].get(key, 0), cfg.train_cfg.get(f'max_{key}s')
        if end is not None and place > end:
            raise ValueError(
                f'it is at {key} {place}, and the training ends at '
                f'train_cfg.max_{key}s={end}'
            )
