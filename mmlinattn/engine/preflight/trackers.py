"""Checks what trackers of videos need."""

from typing import Any

from mmengine.config import Config

from .samples import LIBRARIES


def check_tracker(cfg: Config, name: str, model: Any) -> None:
    """Raise a ValueError for batches of a tracker's data set, 'val' or 'test', with
    more than one entry, at which its prediction ends."""
    own = type(model).__module__.partition('.')[0] not in LIBRARIES
    if own or name == 'train' or not hasattr(model, 'tracker'):
        return
    size = cfg[f'{name}_dataloader'].get('batch_size', 1)
    if size != 1:
        raise ValueError(
            f'{name}_dataloader.batch_size={size}: {type(model).__name__} tracks one '
            f'video at a time: set {name}_dataloader.batch_size=1'
        )
