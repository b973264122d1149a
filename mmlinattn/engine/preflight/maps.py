"""Compares the maps of our backbones with the necks and heads that take them."""

from itertools import combinations
from typing import Any

from torch import nn

from mmlinattn.models.backbones.base import BaseBackbone


def check_channels(model: nn.Module) -> None:
    """Raises a ValueError for a neck or a segmentor's heads that take other channels
    than the maps of one of our backbones have."""
    backbone: Any = getattr(model, 'backbone', None)
    maps = backbone.feature_channels if isinstance(backbone, BaseBackbone) else ()
    neck = getattr(model, 'neck', None)
    names = ('decode_head', 'auxiliary_head') if neck is None else ('neck',)
    for name in names if maps else ():
        parts = getattr(model, name, None)
        for part in parts if isinstance(parts, nn.ModuleList) else [parts]:
            wanted = getattr(part, 'in_channels', None)
            index = getattr(part, 'in_index', None)
            if isinstance(wanted, int) and isinstance(index, int):
                wanted, index = [wanted], [index]
            taken = range(len(maps)) if index is None else index
            if isinstance(wanted, (list, tuple)) and (
                max(taken) >= len(maps) or [*wanted] != [maps[i] for i in taken]
            ):
                raise ValueError(
                    f'model.{name} has in_channels={wanted} and in_index={[*taken]}, '
                    f'but the maps of the backbone have {list(maps)} channels'
                    f'{advise_on_maps(name, part, backbone)}'
                )


def advise_on_maps(name: str, part: Any, backbone: Any) -> str:
    """What to set where a neck or a head takes other maps than a backbone returns."""
    maps, wanted = list(backbone.feature_channels), part.in_channels
    index: Any = getattr(part, 'in_index', None)
    if isinstance(wanted, int):
        one = index if index in range(-len(maps), len(maps)) else len(maps) - 1
        return f': set model.{name}.in_index={one} and in_channels={maps[one]}'
    if index is not None:
        several = [i for i in index if i in range(-len(maps), len(maps))]
        channels = [maps[i] for i in several]
        return f': set model.{name}.in_index={several} and in_channels={channels}'
    if len(wanted) >= len(maps):
        return f': set model.{name}.in_channels={maps}'
    # maps with the wanted channels, otherwise the last ones
    places = combinations(range(len(maps)), len(wanted))
    last = tuple(range(len(maps)))[-len(wanted) :]
    chosen = next((x for x in places if [maps[i] for i in x] == [*wanted]), last)
    stages = tuple(backbone.out_indices[i] for i in chosen)
    text, channels = f': set model.backbone.out_indices={stages}', maps[chosen[0] :]
    if channels != [*wanted] and chosen == last:
        text += f' and model.{name}.in_channels={channels}'
    return text
