"""Compares the maps of our backbones with the necks and heads that take them."""

import inspect
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.func import functional_call

from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.utils.log import quiet

from .classifiers import check_classifier

# Sides of the square image that backbones are run for.
SIDE = 512
ADVICE = ': return the maps of these strides, or set those of the maps in the head'


def check_channels(model: nn.Module) -> None:
    """Raise a ValueError for a neck or a segmentor's heads that take other channels
    than the maps of one of our backbones have."""
    backbone: Any = getattr(model, 'backbone', None)
    if not isinstance(backbone, BaseBackbone):
        return
    check_classifier(model)
    neck = getattr(model, 'neck', None)
    names = ('decode_head', 'auxiliary_head') if neck is None else ('neck',)
    for name in names:
        parts = getattr(model, name, None)
        for part in parts if isinstance(parts, nn.ModuleList) else [parts]:
            check_inputs(name, part, backbone)


def check_inputs(name: str, part: Any, backbone: Any) -> None:
    """Raise a ValueError for a neck or a head whose ``in_channels`` are not those of
    the maps that it takes."""
    maps = backbone.feature_channels
    wanted = getattr(part, 'in_channels', None)
    index = getattr(part, 'in_index', None)
    if isinstance(wanted, int) and isinstance(index, int):
        wanted, index = [wanted], [index]
    if not isinstance(wanted, (list, tuple)):
        return
    places = range(len(maps)) if index is None else index
    if max(places) >= len(maps) or list(wanted) != [maps[i] for i in places]:
        raise ValueError(
            f'model.{name} has in_channels={wanted} and in_index={list(places)}, '
            f'but the maps of the backbone have {list(maps)} channels'
            f'{advise_on_maps(name, part, backbone)}'
        )


def advise_on_maps(name: str, part: Any, backbone: Any) -> str:
    """Return what to set where a neck or a head takes other maps than a backbone
    returns."""
    maps, wanted = list(backbone.feature_channels), part.in_channels
    index: Any = getattr(part, 'in_index', None)
    places = range(-len(maps), len(maps))
    if isinstance(wanted, int):
        one = index if index in places else len(maps) - 1
        return f': set model.{name}.in_index={one} and in_channels={maps[one]}'
    if index is not None:
        several = [i for i in index if i in places]
        channels = [maps[i] for i in several]
        return f': set model.{name}.in_index={several} and in_channels={channels}'
    if len(wanted) >= len(maps):
        return f': set model.{name}.in_channels={maps}'
    return advise_on_stages(name, wanted, backbone)


def advise_on_stages(name: str, wanted: Sequence[int], backbone: Any) -> str:
    """Return the stages to return for a neck that takes fewer maps than a backbone
    returns: those of the wanted channels, otherwise the last ones."""
    maps = list(backbone.feature_channels)
    last = tuple(range(len(maps)))[-len(wanted) :]
    chosen = last
    for places in combinations(range(len(maps)), len(wanted)):
        if [maps[i] for i in places] == list(wanted):
            chosen = places
            break
    stages = tuple(backbone.out_indices[i] for i in chosen)
    text, channels = f': set model.backbone.out_indices={stages}', maps[chosen[0] :]
    if channels != list(wanted) and chosen == last:
        text += f' and model.{name}.in_channels={channels}'
    return text


def check_levels(model: Any, warn: Callable[[str], object]) -> None:
    """Run a detector's backbone, unless it is ours, and its neck, and compare what they
    make with the levels of the head and with those that regions are cut out of: a
    ValueError for a neck that does not take the maps of one of our backbones, and for
    another number of levels; ``warn`` takes other strides of as many."""
    backbone, neck = getattr(model, 'backbone', None), getattr(model, 'neck', None)
    head, generator = find_generator(model)
    wanted = getattr(model, 'num_feature_levels', None)
    is_ours = isinstance(backbone, BaseBackbone)
    if backbone is None or not (is_ours or generator or wanted):
        return
    maps = maps_of(backbone)
    strides = None if maps is None else strides_of(backbone, maps, neck)
    if strides is None:
        return
    if neck is not None:
        check_num_levels(model, strides)
    if generator is None or is_relative(generator):
        return
    if are_at_levels(model, head, generator, strides, warn):
        check_regions(model, strides, warn)


def find_generator(model: Any) -> tuple[str, Any]:
    """Return the name of the head of a detector that has anchors or points, and their
    generator, None without one."""
    name = 'rpn_head' if getattr(model, 'rpn_head', None) is not None else 'bbox_head'
    return name, getattr(getattr(model, name, None), 'prior_generator', None)


def maker_of(model: Any) -> str:
    """Return the part of a detector that makes the maps of its heads."""
    has_neck = getattr(model, 'neck', None) is not None
    return 'model.neck' if has_neck else 'model.backbone'


def are_at_levels(
    model: Any,
    head: str,
    generator: Any,
    strides: list[int],
    warn: Callable[[str], object],
) -> bool:
    """Return whether maps have the strides of a head's levels; ``warn`` takes others,
    and a ValueError tells of levels without a map."""
    levels = levels_of(generator)
    text = (
        f'{maker_of(model)} makes {len(strides)} maps of strides {strides}, but '
        f'model.{head} has {len(levels)} levels of strides {levels}'
    )
    advice = ADVICE
    if isinstance(model.backbone, BaseBackbone):
        advice = advise_on_strides(model.backbone, levels)
    if lacks_levels(strides, generator):
        raise ValueError(f'{text}{advice}')
    if differ(strides, levels):
        warn(f'{text}, so boxes lie at wrong places{advice}')
        return False
    return True


def check_regions(
    model: Any, strides: list[int], warn: Callable[[str], object]
) -> None:
    """Warn of regions that are cut out of maps of other strides than they have."""
    extractor = getattr(getattr(model, 'roi_head', None), 'bbox_roi_extractor', None)
    is_list = isinstance(extractor, nn.ModuleList)
    extractors: Any = extractor if is_list else [extractor]
    for extractor in extractors:
        levels = [*(getattr(extractor, 'featmap_strides', None) or ())]
        if differ(strides, levels):
            warn(
                f'{maker_of(model)} makes maps of strides {strides}, but model.'
                f'roi_head.bbox_roi_extractor has featmap_strides={levels}, so regions '
                f'are cut out at wrong places: set {strides[: len(levels)]}'
            )
            return


def check_num_levels(model: Any, strides: list[int]) -> None:
    """Raise a ValueError for a neck that makes another number of maps than a Deformable
    DETR, or one of its kind, takes."""
    wanted = getattr(model, 'num_feature_levels', None)
    if isinstance(wanted, int) and len(strides) != wanted:
        raise ValueError(
            f'model.neck makes {len(strides)} maps of strides {strides}, but the model '
            f'takes num_feature_levels={wanted}: set model.neck.num_outs={wanted}'
        )


def levels_of(generator: Any) -> list[int]:
    """Return strides of the levels that a generator of anchors or points has."""
    return [
        stride[0] if isinstance(stride, (list, tuple)) else stride
        for stride in generator.strides
    ]


def differ(strides: list[int], levels: list[int]) -> bool:
    """Return whether a map has another stride than the level of its place."""
    return any(max(a, b) >= 1.5 * min(a, b) for a, b in zip(strides, levels))


def lacks_levels(strides: list[int], generator: Any) -> bool:
    """Return whether a head can't run on maps of these strides. Heads of points leave
    the last maps out; those of anchors do not."""
    levels = levels_of(generator)
    if len(strides) <= len(levels):
        return len(strides) < len(levels)
    return 'Anchor' in type(generator).__name__ or differ(strides, levels)


def is_relative(generator: Any) -> bool:
    """Return whether strides of a generator are those of one size of photos, as
    SSD's."""
    return hasattr(generator, 'input_size')


def maps_of(backbone: Any) -> Optional[list[tuple[int, int]]]:
    """Return channels and strides of the maps of a backbone. One that is not ours is
    run, without numbers where its operators can do so. None if it makes no maps."""
    if isinstance(backbone, BaseBackbone):
        if backbone.out_type != 'featmap':
            return None
        return list(zip(backbone.feature_channels, backbone.feature_strides))
    channels = getattr(backbone, 'in_channels', 3)
    channels = channels if isinstance(channels, int) else 3
    for device, side in (('meta', SIDE), ('cpu', SIDE // 2)):
        outputs = run(backbone, torch.zeros(1, channels, side, side, device=device))
        if outputs is not None:
            return [(out.shape[1], round(side / out.shape[2])) for out in outputs]
    return None


def run(module: nn.Module, x: Any) -> Optional[Sequence[Tensor]]:
    """Return the maps (B, C, H, W) that a module in evaluation mode makes of its input,
    with weights on the input's device. None if it makes others, or can't run so."""
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    modes = {part: part.training for part in module.modules()}
    if x.is_meta:
        state = {name: torch.empty_like(t, device='meta') for name, t in state.items()}
    try:
        module.eval()  # some of OpenMMLab's return nothing
        with torch.no_grad(), quiet():
            outputs = functional_call(module, state, (x,))
    except Exception:  # of a model that is not ours, for which it is no fault
        return None
    finally:
        for part, mode in modes.items():
            part.training = mode
    outputs = [outputs] if isinstance(outputs, Tensor) else outputs
    return outputs if are_maps(outputs) else None


def are_maps(outputs: Any) -> bool:
    """Return whether outputs are maps (B, C, H, W) alone."""
    return isinstance(outputs, (list, tuple)) and all(
        isinstance(out, Tensor) and out.dim() == 4 for out in outputs
    )


def takes_one_input(neck: nn.Module) -> bool:
    """Return whether a module needs one argument."""
    required = [
        parameter
        for parameter in inspect.signature(neck.forward).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind != parameter.VAR_KEYWORD
    ]
    return len(required) == 1


def strides_of(
    backbone: Any, channels_and_strides: list[tuple[int, int]], neck: Any
) -> Optional[list[int]]:
    """Return strides of the maps of a neck, or of a backbone without one; None if the
    neck takes or makes more than maps."""
    if neck is None:
        return [stride for _, stride in channels_and_strides]
    if not takes_one_input(neck):
        return None
    mode = neck.training
    maps = [
        torch.zeros(1, dims, *[-(-SIDE // step)] * 2)
        for dims, step in channels_and_strides
    ]
    try:
        neck.eval()
        with torch.no_grad():
            outputs = neck(tuple(maps))
    except (AssertionError, IndexError, RuntimeError) as error:
        if not isinstance(backbone, BaseBackbone):
            return None  # it may take more than the maps of a photo
        why = ' '.join(str(error).split()) or type(error).__name__
        raise ValueError(
            f'model.neck={type(neck).__name__} does not take the {len(maps)} maps of '
            f'the backbone ({why}): set model.neck.in_channels='
            f'{list(backbone.feature_channels)}, or other model.backbone.out_indices'
        ) from error
    finally:
        neck.train(mode)
    if not are_maps(outputs):
        return None
    return [round(SIDE / out.shape[2]) for out in outputs]


def advise_on_strides(backbone: Any, wanted: list[int]) -> str:
    """Return the stages whose maps have the first strides that a head takes, if any."""
    steps = dict(zip(backbone.feature_strides, backbone.out_indices))
    stages = tuple(steps[stride] for stride in wanted if stride in steps)
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
