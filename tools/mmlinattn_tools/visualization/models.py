"""Models from configs, with or without a checkpoint, ready to be looked at."""

from typing import Any, Optional

import torch
from mmengine.config import Config
from torch import nn

from mmlinattn.engine.preflight import build_model
from mmlinattn.utils import load_config
from mmlinattn.weights import find_state_dict, load_pretrained, read_checkpoint


def read_model_config(path: str) -> Config:
    """Reads a config that has a model.

    Args:
        path (str): Path of the config.

    Raises:
        FileNotFoundError: If the config or one that it inherits is missing.
        ValueError: If it has no model.
    """
    cfg = load_config(path)
    if 'model' not in cfg:
        raise ValueError(f'{path}: it has no model')
    return cfg


def load_model(
    cfg: Config, checkpoint: Optional[str] = None, whole: bool = False
) -> nn.Module:
    """Builds the model of a config in eval mode, with its weights.

    Args:
        cfg (Config): The config.
        checkpoint (str, optional): Of the whole model or of its backbone, as
            :func:`mmlinattn.weights.load_pretrained` takes it. Default: none; the
            model is initialized as for training from scratch, with seed 0.
        whole (bool): Refuses a checkpoint that has the backbone only, because heads
            are needed, too.

    Raises:
        FileNotFoundError: If there is no such checkpoint.
        ValueError: If the checkpoint is that of another model.
    """
    torch.manual_seed(0)
    model: Any = build_model(cfg)
    if checkpoint is None:
        if hasattr(model, 'init_weights'):
            model.init_weights()
    elif whole or not hasattr(model, 'backbone') or _is_whole(model, checkpoint):
        _load_whole(model, checkpoint)
    else:
        _load_backbone(model, checkpoint)
    return model.eval()


def _is_whole(model: nn.Module, checkpoint: str) -> bool:
    """Whether a checkpoint names any part of the model besides its backbone."""
    found, _ = find_state_dict(read_checkpoint(checkpoint, 'checkpoint'))
    others = [name for name in model.state_dict() if not name.startswith('backbone.')]
    return any(name in found for name in others)


def _load_whole(model: nn.Module, checkpoint: str) -> None:
    found, _ = find_state_dict(read_checkpoint(checkpoint, 'checkpoint'))
    own = model.state_dict()
    missing = [name for name in own if name not in found]
    other = [name for name in found if name not in own]
    shapes = [
        f'{name} {tuple(found[name].shape)}, not {tuple(value.shape)}'
        for name, value in own.items()
        if name in found and found[name].shape != value.shape
    ]
    for what, names in (
        ('it lacks', missing),
        ('the model has no', other),
        ('it has', shapes),
    ):
        if names:
            more = f' and {len(names) - 1} more' if len(names) > 1 else ''
            raise ValueError(
                f'checkpoint={checkpoint!r} is not of this '
                f'{type(model).__name__}: {what} {names[0]}{more}. Give one that '
                'was trained with this config'
            )
    model.load_state_dict(found)


def _load_backbone(model: Any, checkpoint: str) -> None:
    try:
        load_pretrained(model.backbone, checkpoint)
    except KeyError as error:
        raise ValueError(error.args[0]) from error


def feature_extractor(model: nn.Module) -> nn.Module:
    """The part of a model that has its attentions: its backbone, or all of it."""
    backbone: Any = getattr(model, 'backbone', model)
    return backbone
