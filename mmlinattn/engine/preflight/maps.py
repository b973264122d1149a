"""Compares the maps of our backbones with the necks and heads that take them."""

import inspect
from collections.abc import Callable
from itertools import combinations
from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmlinattn.models.backbones.base import BaseBackbone


def check_channels(model: nn.Module) -> None:
    """Raises a ValueError for a neck or a segmentor's heads that take other channels
    than the maps of one of our backbones have."""
    backbone: Any = getattr(model, 'backbone', None)
    maps = backbone.feature_channels if isinstance(backbone, BaseBackbone) else ()
    neck = getattr(model, 'neck', None)
    names = ('decode_head', 'auxiliary_head') if neck is None else ('neck',)
    check_classifier(model, maps)
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


def check_classifier(model: Any, maps: tuple[int, ...]) -> None:
    """Raises a ValueError for a classifier's head that takes other channels than the
    last of maps has, behind a neck without weights."""
    head, neck = getattr(model, 'head', None), getattr(model, 'neck', None)
    wanted = getattr(head, 'in_channels', None)
    kinds = {kind.__name__ for kind in type(head).__mro__}
    if not maps or 'ClsHead' not in kinds or not isinstance(wanted, int):
        return
    pools = neck is None or type(neck).__name__ == 'GlobalAveragePooling'
    if pools and wanted != maps[-1]:
        raise ValueError(
            f'model.head has in_channels={wanted}, but the last map of the backbone '
            f'has {maps[-1]} channels: set model.head.in_channels={maps[-1]}'
        )


def check_levels(model: Any, warn: Callable[[str], object]) -> None:
    """Runs a detector's neck on maps of one of our backbones, and compares what it
    makes of them with the levels of the head: a ValueError for a neck that does not
    take the maps, and for other levels; ``warn`` takes other strides of as many."""
    backbone, neck = getattr(model, 'backbone', None), getattr(model, 'neck', None)
    if neck is None or not isinstance(backbone, BaseBackbone):
        return
    strides = strides_of(backbone, neck) if backbone.out_type == 'featmap' else None
    name = 'rpn_head' if getattr(model, 'rpn_head', None) is not None else 'bbox_head'
    generator = getattr(getattr(model, name, None), 'prior_generator', None)
    if strides is None or generator is None:
        return
    levels = [x[0] if isinstance(x, (list, tuple)) else x for x in generator.strides]
    text = (
        f'model.neck makes {len(strides)} maps of strides {strides}, but model.{name} '
        f'has {len(levels)} levels of strides {levels}'
    )
    advice = advise_on_strides(backbone, levels)
    # heads of points leave the last maps out
    surplus = len(strides) > len(levels) and 'Anchor' in type(generator).__name__
    differ = any(max(a, b) >= 1.5 * min(a, b) for a, b in zip(strides, levels))
    if (
        len(strides) < len(levels)
        or surplus
        or (differ and len(strides) != len(levels))
    ):
        raise ValueError(f'{text}{advice}')
    if differ:
        warn(f'{text}, so boxes lie at wrong places{advice}')


def strides_of(backbone: Any, neck: Any) -> Optional[list[int]]:
    """Strides of the maps of a neck, or None if it takes or makes more than maps."""
    side, mode = 512, neck.training
    shapes = zip(backbone.feature_channels, backbone.feature_strides)
    maps = [torch.zeros(1, dims, *[-(-side // step)] * 2) for dims, step in shapes]
    parameters = inspect.signature(neck.forward).parameters.values()
    if sum(x.default is x.empty and x.kind != x.VAR_KEYWORD for x in parameters) != 1:
        return None
    try:
        with torch.no_grad():
            outputs = neck.eval()(tuple(maps))
    except (AssertionError, IndexError, RuntimeError) as error:
        why = ' '.join(str(error).split()) or type(error).__name__
        raise ValueError(
            f'model.neck={type(neck).__name__} does not take the {len(maps)} maps of '
            f'the backbone ({why}): set model.neck.in_channels='
            f'{list(backbone.feature_channels)}, or other model.backbone.out_indices'
        ) from error
    finally:
        neck.train(mode)
    if not isinstance(outputs, (list, tuple)):
        return None
    if not all(isinstance(x, Tensor) and x.dim() == 4 for x in outputs):
        return None
    return [round(side / x.shape[2]) for x in outputs]


def advise_on_strides(backbone: Any, wanted: list[int]) -> str:
    """The stages whose maps have the first strides that a head takes, if any."""
    steps = dict(zip(backbone.feature_strides, backbone.out_indices))
    stages = tuple(steps[x] for x in wanted if x in steps)
    if not stages or stages == tuple(backbone.out_indices):
        return ''
    channels = [
        dims
        for dims, i in zip(backbone.feature_channels, backbone.out_indices)
        if i in stages
    ]
    return (
        f': set model.backbone.out_indices={stages} and model.neck.in_channels='
        f'{channels}'
    )
