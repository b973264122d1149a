"""Checks of the options that backbones have in common."""

from typing import Any

from mmlinattn.parts import find

from ..layers.types import Indices


def check_config(cfg: Any, name: str) -> dict:
    """Return a config, a dict with a 'type', or the type alone as one; else a
    ValueError."""
    if isinstance(cfg, str) and find(cfg):
        return dict(type=cfg)
    if not isinstance(cfg, dict) or 'type' not in cfg:
        raise ValueError(f"{name} must be a config, a dict with a 'type', got {cfg!r}")
    return cfg


def resolve_indices(out_indices: Indices, num_stages: int) -> tuple[int, ...]:
    """Return the argument ``out_indices`` as a tuple of increasing numbers of stages,
    from 0; else a ValueError."""
    stages = (out_indices,) if isinstance(out_indices, int) else out_indices
    try:
        indices = tuple(range(num_stages)[i] for i in stages)
    except (IndexError, TypeError):
        indices = ()
    if not indices or list(indices) != sorted({*indices}):
        raise ValueError(
            'out_indices must be a stage number or a list of increasing ones in 0...'
            f'{num_stages - 1}, negative ones counting from the last, got '
            f'{out_indices!r}'
        )
    return indices


def square_image_side(img_size: Any, smallest: int = 1) -> int:
    """Return the argument ``img_size``, a side or two equal ones, as one; else a
    ValueError.

    Tables are made for square images, and resized for images of other shapes.
    """
    is_pair = isinstance(img_size, (list, tuple)) and len(img_size) == 2
    side, other = img_size if is_pair else (img_size, img_size)
    if side != other or not isinstance(side, int) or side < smallest:
        raise ValueError(
            'img_size must be the side of square images, an integer from '
            f'{smallest} on, got {img_size!r}; models take images of any shape'
        )
    return side
