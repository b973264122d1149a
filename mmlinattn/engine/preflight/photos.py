"""Looks at the channels and sizes of photos as a model gets them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

from mmengine.config import Config
from torch import Tensor, nn

from mmlinattn.models.backbones.base import MIN_SIDE, BaseBackbone

from .building import error_in
from .samples import LIBRARIES

# Photos whose sizes are looked at; those of others' headers cost a file each.
MOST_SIZES, MOST_HEADERS = 20_000, 2_000


def pixels_of(sample: Any) -> Optional[Tensor]:
    """Return the photo (C, H, W) of a sample, or None for one of another kind."""
    inputs = sample.get('inputs') if isinstance(sample, dict) else None
    return inputs if isinstance(inputs, Tensor) and inputs.dim() == 3 else None


def prepare(model: nn.Module, sample: Any) -> Optional[Tensor]:
    """Return the batch (1, C, H, W) of a sample that a model gets from its preprocessor
    in a test, or None if there is no such thing."""
    preprocessor: Any = getattr(model, 'data_preprocessor', None)
    pixels = pixels_of(sample)
    if preprocessor is None or pixels is None or type(preprocessor) is nn.Module:
        return None
    samples = [sample['data_samples']] if 'data_samples' in sample else None
    prepared = preprocessor(dict(inputs=[pixels], data_samples=samples), False)
    batch = prepared.get('inputs') if isinstance(prepared, dict) else None
    return batch if isinstance(batch, Tensor) and batch.dim() == 4 else None


def check_channels_of(
    key: str, model: nn.Module, sample: Any, warn: Callable[[str], object]
) -> None:
    """Raise a ValueError for a sample of other channels than ``mean``, ``std`` and the
    backbone have. ``warn`` takes what may be meant."""
    pixels = pixels_of(sample)
    if pixels is None:
        return
    channels = len(pixels)
    has = f'{key}: its first sample has {channels} channels'
    try:
        batch = prepare(model, sample)
    except (AssertionError, IndexError, RuntimeError, TypeError, ValueError) as error:
        preprocessor: Any = model.data_preprocessor
        own = type(preprocessor).__module__.partition('.')[0] not in LIBRARIES
        lengths = {name: len_of(preprocessor, name) for name in ('mean', 'std')}
        differ = [n for n in lengths.values() if n not in (None, 1, channels)]
        # one of the user's own may need what only a run has
        if own or not (differ or channels != 3):
            return
        values = ' and '.join(
            f'{length or "no"} values of {name}' for name, length in lengths.items()
        )
        raise ValueError(
            f'{has}, but data_preprocessor has {values}: give it one of each for each '
            'channel, and model.backbone as many in_channels'
            f'{advise_on_gray(channels)}'
        ) from error
    if batch is None:
        return
    if batch.shape[1] != channels:
        warn(f'{has}, of which the data_preprocessor makes {batch.shape[1]}')
    check_backbone(has, model, batch.shape[1], warn)


def check_backbone(
    has: str, model: nn.Module, channels: int, warn: Callable[[str], object]
) -> None:
    """Compare the channels of a batch with the backbone's."""
    backbone: Any = getattr(model, 'backbone', None)
    wanted = getattr(backbone, 'in_channels', None)
    if not isinstance(wanted, int) or wanted == channels:
        return
    text = (
        f'{has}, and the model gets {channels}, but model.backbone has '
        f'in_channels={wanted}: set model.backbone.in_channels={channels}'
    )
    if isinstance(backbone, BaseBackbone):
        raise ValueError(f'{text}{advise_on_gray(channels)}')
    warn(text)


def advise_on_gray(channels: int) -> str:
    """Return what to set where a gray photo meets a model for colors."""
    if channels != 1:
        return ''
    return "; or read gray photos as colors, color_type='color' of LoadImageFromFile"


def len_of(preprocessor: nn.Module, name: str) -> Optional[int]:
    """Return the number of values of ``mean`` or ``std``, None without any."""
    values = getattr(preprocessor, name, None)
    return values.numel() if isinstance(values, Tensor) else None


def sizes_of(dataset: Any) -> Iterator[tuple[int, int, int]]:
    """Yield indices, widths and heights of a data set's photos, from its annotations
    or, for the first ones, from the files' headers."""
    if not hasattr(dataset, 'get_data_info'):
        return
    headers = 0
    for i in range(min(len(dataset), MOST_SIZES)):
        info = dataset.get_data_info(i)
        width, height = info.get('width'), info.get('height')
        if not width or not height:
            headers += 1
            if headers > MOST_HEADERS or not isinstance(info.get('img_path'), str):
                return
            width, height = header_size(info['img_path'])
        if width and height:
            yield i, int(width), int(height)


def header_size(path: str) -> tuple[int, int]:
    """Return width and height in a file's header; (0, 0) if it can't be read."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return image.size
    except Exception:  # of formats that MMCV reads by other libraries, or no file
        return 0, 0


def check_smallest(cfg: Config, key: str, model: nn.Module, dataset: Any) -> None:
    """Raise a ValueError if the smallest or the longest photo of a data set becomes
    nothing or, in a test, too small for a backbone of ours."""
    sizes = list(sizes_of(dataset))
    if not sizes or type(dataset).__module__.partition('.')[0] not in LIBRARIES:
        return
    smallest = min(sizes, key=lambda size: min(size[1:]))
    longest = max(sizes, key=lambda size: max(size[1:]) / min(size[1:]))
    for index, width, height in dict.fromkeys((smallest, longest)):
        # others are seen when they are read
        if min(width, height) >= 4 * MIN_SIDE:
            continue
        name = Path(str(dataset.get_data_info(index).get('img_path', index))).name
        place = f'{key}: {name}, {width} x {height} pixels,'
        try:
            sample = dataset[index]
        except Exception as error:
            if 'OpenCV' not in str(error):
                with error_in(cfg, key):
                    raise
            why = ' '.join(str(error).split())
            raise ValueError(
                f'{place} can not be resized: leave it out, or cut it ({why})'
            ) from error
        if 'train' not in key:
            check_side(place, model, sample)


def check_side(place: str, model: nn.Module, sample: Any) -> None:
    """Raise a ValueError for a sample that is too small for a backbone of ours."""
    if not isinstance(getattr(model, 'backbone', None), BaseBackbone):
        return
    batch = prepare(model, sample)
    if batch is not None and min(batch.shape[2:]) < MIN_SIDE:
        size = ' x '.join(map(str, batch.shape[:1:-1]))
        raise ValueError(
            f'{place} becomes {size}, and the backbone takes {MIN_SIDE} x {MIN_SIDE} '
            f'or more: {advise_on_padding(model)}'
        )


def advise_on_padding(model: Any) -> str:
    """Return what to set so that small photos are padded."""
    least = f'({MIN_SIDE}, {MIN_SIDE})'
    if hasattr(model, 'decode_head'):
        return f'set data_preprocessor.test_cfg=dict(size={least}), which pads it'
    return f'resize it, or set data_preprocessor.pad_size_divisor={MIN_SIDE}'


def check_windows(key: str, model: Any, warn: Callable[[str], object]) -> None:
    """Raise a ValueError for a segmentor's windows that can't slide over photos;
    ``warn`` takes those that leave gaps in large ones."""
    cfg = getattr(model, 'test_cfg', None) or {}
    if not hasattr(model, 'decode_head') or cfg.get('mode') != 'slide':
        return
    crop: Any = cfg.get('crop_size')
    stride: Any = cfg.get('stride')
    if not (is_pair(crop) and is_pair(stride)):
        raise ValueError(
            "model.test_cfg has mode='slide', which needs crop_size=(H, W) and "
            f'stride=(H, W), got crop_size={crop} and stride={stride}'
        )
    if any(step > side or step < 1 for side, step in zip(crop, stride)):
        warn(
            f'model.test_cfg has stride={stride} and crop_size={crop}: windows leave '
            'gaps, at which a test of larger photos ends. Set stride to crop_size or '
            'less'
        )
    if isinstance(model.backbone, BaseBackbone) and min(crop) < MIN_SIDE:
        raise ValueError(
            f'model.test_cfg.crop_size={crop} is less than the {MIN_SIDE} x {MIN_SIDE} '
            'pixels that the backbone takes'
        )
    check_padding_of_windows(key, model)


def is_pair(sides: Any) -> bool:
    """Return whether an option is a height and a width."""
    return isinstance(sides, (list, tuple)) and len(sides) == 2


def check_padding_of_windows(key: str, model: Any) -> None:
    """Raise a ValueError for windows of padded photos and a head that resizes each
    window to the size that padding notes for the whole photo."""
    padding = getattr(model.data_preprocessor, 'test_cfg', None)
    if padding and type(model.decode_head).__name__.startswith('Mask'):
        raise ValueError(
            f"{key}: {type(model.decode_head).__name__} can not slide (mode='slide') "
            f'over photos that data_preprocessor.test_cfg={dict(padding)} pads: set '
            "model.test_cfg=dict(mode='whole'), or data_preprocessor.test_cfg=None"
        )
