"""What checkpoints of configs from new-config, and those that adapt has written, say of
their models."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional

from mmlinattn.weights import read_checkpoint

# lines of the config in a checkpoint, which the templates have
MODEL = re.compile(r"^model_name = '(\S+) (\S+)'", re.M)
WIDTH = re.compile(r'^width = (\d+)', re.M)


class Remembered(NamedTuple):
    """The model of a checkpoint.

    Attributes:
        method (str): The name of the method in our configs.
        backbone (str): The name of the backbone.
        width (int): Channels of its narrow pyramid and heads; None for the usual ones.
        adapted (dict): Config of a backbone with other attentions than those of its
            name, which adapt has made; None for any other.
        is_whole (bool): It has all parts of a model.
    """

    method: str
    backbone: str
    width: Optional[int] = None
    adapted: Optional[dict[str, Any]] = None
    is_whole: bool = True


def remembered_model(path: Path) -> Optional[Remembered]:
    """Return the model of a checkpoint that was trained by a config from new-config, or
    that adapt has written; None for any other checkpoint.

    Raises:
        FileNotFoundError, ValueError: See :func:`mmlinattn.weights.read_checkpoint`.
    """
    meta = read_checkpoint(str(path), '--start').get('meta')
    meta = meta if isinstance(meta, dict) else {}
    student = adapted_model(meta.get('adapted'))
    if student:
        return student
    cfg = meta.get('cfg')
    match = MODEL.search(cfg) if isinstance(cfg, str) else None
    if not match or not isinstance(cfg, str):
        return None
    width = WIDTH.search(cfg)
    return Remembered(match[1], match[2], int(width[1]) if width else None)


def adapted_model(adapted: Any) -> Optional[Remembered]:
    """Return the model of what adapt notes in a checkpoint; None for no notes."""
    if not isinstance(adapted, Mapping) or 'backbone' not in adapted:
        return None
    method, _, backbone = str(adapted.get('model_name', '')).partition(' ')
    width = adapted.get('width')
    return Remembered(
        method,
        backbone,
        width,
        dict(adapted['backbone']),
        bool(adapted.get('is_whole')),
    )
