"""What checkpoints of configs from new-config say of their models."""

import re
from pathlib import Path
from typing import NamedTuple, Optional

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
    """

    method: str
    backbone: str
    width: Optional[int]


def remembered_model(path: Path) -> Optional[Remembered]:
    """Return the model of a checkpoint that was trained by a config from new-config;
    None for any other checkpoint.

    Raises:
        FileNotFoundError, ValueError: See :func:`mmlinattn.weights.read_checkpoint`.
    """
    meta = read_checkpoint(str(path), '--start').get('meta')
    cfg = meta.get('cfg') if isinstance(meta, dict) else None
    found = MODEL.search(cfg) if isinstance(cfg, str) else None
    if not found or not isinstance(cfg, str):
        return None
    width = WIDTH.search(cfg)
    return Remembered(found[1], found[2], int(width[1]) if width else None)
