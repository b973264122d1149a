"""Finds the checkpoint that a training continues from, and checks it."""

import copy
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from mmengine.config import Config
from mmengine.logging import MessageHub
from mmengine.optim import OptimWrapperDict, build_optim_wrapper
from mmengine.registry import DefaultScope
from torch import nn

from mmlinattn.weights import read_file

from .part_errors import part, quiet
from .random_state import get_random_state, set_random_state

# how MMEngine's CheckpointHook names the checkpoints of a training by default
NUMBERED = r'(?:epoch|iter)_\d+\.pth'
# entries of optimizers' states that have the shape of the parameter
MOMENTS = {'exp_avg', 'exp_avg_sq', 'max_exp_avg_sq', 'momentum_buffer', 'square_avg'}


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


class _Found(NamedTuple):
    """A checkpoint of a folder.

    Attributes:
        path: Where it is.
        step: Its iterations, -1 if unknown, and the number in its name.
        runs: Ids of the starts of its training, as AtomicCheckpointHook saves them.
        name: MMEngine's name of the last start; another hook's checkpoint has no more.
    """

    path: Path
    step: tuple[int, int]
    runs: tuple = ()
    name: Optional[str] = None

    def continues(self, other: '_Found') -> bool:
        """Whether the training of another checkpoint wrote this one later."""
        if not other.runs:
            return self.name == other.name
        return self.runs[: len(other.runs)] == other.runs

    def precedes(self, other: '_Found') -> bool:
        """Whether it can be an earlier one of the training of another checkpoint."""
        return self.runs == other.runs[: len(self.runs)]


def find_checkpoint(
    work_dir: Union[str, Path],
    out_dir: Optional[str] = None,
    filename_tmpl: Optional[str] = None,
) -> tuple[Optional[str], list[str]]:
    """Finds the newest whole checkpoint of a training.

    MMEngine trusts the file ``last_checkpoint``. If the file is lost, empty or names
    a checkpoint that moved, MMEngine starts again and overwrites what is there. If it
    names a checkpoint that was cut off while it was written, MMEngine fails. This
    function takes the file as a hint of which training is meant. The runs and the
    iterations in the checkpoints themselves decide which one is the last of it; times
    of files do not.

    Args:
        work_dir (str | Path): Folder of the training.
        out_dir (str, optional): The checkpoint hook's; checkpoints are in the folder
            of ``work_dir``'s name in it. Default: they are in ``work_dir``.
        filename_tmpl (str, optional): The checkpoint hook's. Checkpoints with
            MMEngine's names are found in any case.

    Returns:
        tuple[str | None, list[str]]: Path of the checkpoint, or None if there is
        no checkpoint at all; and what was skipped, with the reasons.

    Raises:
        ValueError: If there are checkpoints, or ``last_checkpoint`` names one, but
            none of them is whole; or if they are of several trainings, and nothing
            says which one is meant.
    """
    work_dir = Path(os.path.abspath(work_dir))
    home = Path(os.path.abspath(out_dir), work_dir.name) if out_dir else work_dir
    named, skipped = _named_checkpoint(work_dir, home)
    wanted = re.compile(f'{NUMBERED}|{_pattern(filename_tmpl or "")}')
    folders = {work_dir, home, named.parent if named else home}
    paths = {
        path
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if path == named or wanted.fullmatch(path.name)
    }
    found, torn = [], {}
    for path in sorted(paths, key=_number, reverse=True):
        try:
            found.append(_read(path))
        except ValueError as error:
            torn[path] = str(error)
    last = _last(found, named)
    for other in found:
        if other.step > last.step and not other.continues(last):
            skipped.append(f'{other.path}: it is of another training than {last.path}')
    kin = [
        x for x in found if (x.continues if x.step > last.step else x.precedes)(last)
    ]
    for chosen in sorted(kin, key=lambda x: x.step, reverse=True):
        fault = checkpoint_fault(chosen.path)
        if fault is None:
            later = [path for path in torn if _number(path) > chosen.step[1]]
            return str(chosen.path), skipped + [f'{x}: {torn[x]}' for x in later]
        torn[chosen.path] = fault
    skipped += [f'{path}: {fault}' for path, fault in torn.items()]
    if skipped:
        raise ValueError(
            f'work_dir={str(work_dir)!r} has no whole checkpoint to go on from: '
            f'{"; ".join(skipped)}. Name one elsewhere with --resume CHECKPOINT, or '
            'train anew in another --work-dir'
        )
    return None, skipped


def _named_checkpoint(work_dir: Path, home: Path) -> tuple[Optional[Path], list[str]]:
    """The checkpoint that ``last_checkpoint`` names; and what is wrong with it."""
    pointer = work_dir / 'last_checkpoint'
    if not pointer.is_file():
        return None, []
    name = pointer.read_text(errors='replace').strip()
    if not name:
        return None, [f'{pointer}: the file is empty']
    # a folder that was copied has its own, though the first one may be there too
    for path in (home / Path(name).name, Path(os.path.abspath(name))):
        if path.exists():
            return path, []
    return None, [f'{name}, named by {pointer}: there is no such file']


def _pattern(filename_tmpl: str) -> str:
    """Regular expression of the names that a template makes of a number."""
    return r'\d+'.join(map(re.escape, re.split(r'\{[^{}]*\}', filename_tmpl)))


def _number(path: Path) -> int:
    numbers = re.findall(r'\d+', path.stem)
    return int(numbers[-1]) if numbers else -1


def _read(path: Path) -> _Found:
    """What a checkpoint says of its training; its tensors stay on the disk.

    Raises:
        ValueError: If the file can't be read.
    """
    unknown = _Found(path, (-1, _number(path)))
    if path.is_dir():
        return unknown
    try:
        checkpoint = read_file(path, mmap=True)
    except ValueError:
        fault = checkpoint_fault(path)
        if fault:
            raise ValueError(fault) from None
        return unknown  # it holds more than plain data
    meta, runs = checkpoint.get('meta'), checkpoint.get('runs')
    if not isinstance(meta, Mapping) or type(meta.get('iter')) is not int:
        return unknown
    return _Found(
        path,
        (meta['iter'], _number(path)),
        tuple(runs) if isinstance(runs, list) else (),
        meta.get('experiment_name'),
    )


def _last(found: list[_Found], named: Optional[Path]) -> Optional[_Found]:
    """The last checkpoint that is known to be of the training that is meant.

    Raises:
        ValueError: If there are several trainings, and no checkpoint is named.
    """
    if not found:
        return None
    # the one before, if what is named can't be read
    for test in (lambda x: x.path == named, lambda x: x.step[1] <= _number(named)):
        known = [x for x in found if named and test(x)]
        if known:
            return max(known, key=lambda x: x.step)
    last = max(found, key=lambda x: (len(x.runs), x.step))
    others = [x for x in found if not x.precedes(last)]
    if others:
        raise ValueError(
            f'{last.path} and {others[0].path} are of different trainings, and no file '
            'last_checkpoint says which one is meant: name it with --resume CHECKPOINT'
        )
    return last


def check_resume(checkpoint: Mapping, model: nn.Module, cfg: Config) -> None:
    """Raises an error for a checkpoint that its training can't go on from.

    Args:
        checkpoint (dict): What the file holds.
        model (nn.Module): The model of the run.
        cfg (Config): The config of the run.

    Raises:
        ValueError: If there is no state of a training, it can't be restored, or the
            training is shorter than that.
    """
    if 'optimizer' not in checkpoint:
        raise ValueError(
            'it has no state of a training: start from its weights with '
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
    if not isinstance(meta.get('seed') or 0, int):
        raise ValueError(f'its meta.seed must be a number, got {meta["seed"]!r}')
    with part('its message_hub'):
        MessageHub('check').load_state_dict(checkpoint['message_hub'])
    with part('its param_schedulers'):
        saved = checkpoint.get('param_schedulers') or []
        for schedules in saved.values() if isinstance(saved, Mapping) else [saved]:
            list(map(dict, schedules))
    state = get_random_state()
    try:
        with part('its random_states'):
            for saved in checkpoint.get('random_states') or []:
                set_random_state(saved)
    finally:
        set_random_state(state)
    if 'runner_type' not in cfg and isinstance(cfg.optim_wrapper, dict):
        scope = DefaultScope.overwrite_default_scope(
            cfg.get('default_scope') or 'mmengine'
        )
        with part('its optimizer'), quiet(), scope:
            optim_wrapper = build_optim_wrapper(model, copy.deepcopy(cfg.optim_wrapper))
            optim_wrapper.load_state_dict(copy.copy(checkpoint['optimizer']))
            _check_optimizers(optim_wrapper)


def _check_optimizers(optim_wrapper: Any) -> None:
    """Raises an error for a restored state that the first step would fail with.

    States of other optimizers than PyTorch's can be anything.

    Raises:
        ValueError: If it is one of another optimizer or model.
    """
    wrappers = [optim_wrapper]
    if isinstance(optim_wrapper, OptimWrapperDict):
        wrappers = list(optim_wrapper.values())
    for optimizer in (wrapper.optimizer for wrapper in wrappers):
        if not type(optimizer).__module__.startswith('torch.optim'):
            continue
        for group in optimizer.param_groups:
            lacking = sorted(optimizer.defaults.keys() - group.keys())
            if lacking:
                raise ValueError(
                    f'it is of another one than {type(optimizer).__name__}, which has '
                    f'{", ".join(lacking)}'
                )
        for parameter, state in optimizer.state.items():
            for key in state.keys() & MOMENTS:
                shape = getattr(state[key], 'shape', parameter.shape)
                if shape != parameter.shape:
                    raise ValueError(
                        f'{key} of a parameter has the shape {tuple(shape)}, not '
                        f'{tuple(parameter.shape)}'
                    )
