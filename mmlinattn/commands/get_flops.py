"""Count the FLOPs and parameters of a model, by part.

CONFIG is a config of mmdet, mmseg, mmpretrain or mmlinattn. One FLOP is one
multiply-accumulate, as in the papers; docs/flops.md lists the counted operations.

The count covers a prediction of one image, up to the outputs of the heads:
- auxiliary heads are excluded;
- a two-stage detector's RoI head gets the largest number of proposals of its RPN
  (test_cfg.rpn.max_per_img), and the mask head those of mmdet's own counter,
  for Mask R-CNN the first 100.

Only shapes matter, so the model runs on torch's meta device, which computes nothing.
RoI heads and other parts without meta kernels run on the CPU.
"""

import argparse
import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Optional

from mmlinattn.cli.parser import (
    INPUT_ERRORS,
    Parser,
    add_cfg_options,
    errors_in_one_line,
    number,
)
from mmlinattn.runs.preparation import load_model, test_data  # first: it checks mmcv

# isort: split
import torch
from mmengine.config import Config
from mmengine.structures import BaseDataElement, InstanceData
from mmengine.utils import to_2tuple
from torch import nn

from mmlinattn.analysis import FlopCount, count_flops
from mmlinattn.engine.preflight import error_in, predicting_part
from mmlinattn.parts import type_name
from mmlinattn.utils.log import quiet

Shape = tuple[int, int]  # height and width
ATTENTION_KINDS = ('softmax_attention', 'gaussian_kernel', 'pseudo_inverse')


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add('config', metavar='CONFIG', help='path of the config')
    text = 'height and width in pixels, or one for both (default: of the test pipeline)'
    side = number(int, 1, 2**16)
    add('--shape', nargs='+', type=side, metavar='SIDE', help=text)
    add_cfg_options(parser, 'model.backbone.arch=small')
    args = parser.parse_args(argv)
    if args.shape and len(args.shape) > 2:
        parser.error(f'--shape takes one or two numbers, got {len(args.shape)}')
    return args


def default_shape(cfg: Config) -> Shape:
    """Return height and width of the largest image from a config's test pipeline."""
    shape: Optional[Sequence[int]] = None
    for transform in test_data(cfg).get('pipeline', []):
        kind = type_name(transform)
        if kind == 'Resize' and transform.get('scale'):
            shape = to_2tuple(transform['scale'])[::-1]
            if transform.get('keep_ratio'):  # a scale for images of any orientation
                shape = sorted(shape)
        elif kind == 'CenterCrop':
            shape = to_2tuple(transform['crop_size'])
    if shape is None:
        raise ValueError('the test pipeline has no fixed scale: give --shape H W')
    preprocessor = cfg.model.get('data_preprocessor') or {}
    divisor = preprocessor.get('pad_size_divisor', 1)
    height, width = (-(-length // divisor) * divisor for length in shape)
    return height, width


def count(model: Any, shape: Shape) -> FlopCount:
    """FlopCount of a model on one image of a shape (H, W); the model is on the CPU."""
    twin = copy.deepcopy(model).to('meta')
    if hasattr(model, 'roi_head'):
        twin.roi_head = model.roi_head
    try:
        return count_on(twin, shape, 'meta')
    except RuntimeError:  # something needs values, or has no meta kernel
        return count_on(model, shape, 'cpu')


def whole_image_box(model: Any, shape: Shape) -> torch.Tensor:
    """Return a region of the size of the image, (1, 4), or (1, 5) in detectors of
    rotated boxes: x and y of the center, width, height and angle."""
    height, width = shape
    bbox_head = getattr(model.roi_head, 'bbox_head', None)
    if getattr(bbox_head, 'predict_box_type', 'hbox') == 'rbox':
        return torch.tensor([[width / 2, height / 2, width, height, 0.0]])
    return torch.tensor([[0.0, 0.0, width, height]])


def count_on(model: Any, shape: Shape, device: str) -> FlopCount:
    """FlopCount of a model on a device, for one image of a shape (H, W)."""
    names = ('img_shape', 'ori_shape', 'pad_shape', 'batch_input_shape')
    metainfo = dict.fromkeys(names, shape)
    samples = [BaseDataElement(metainfo=dict(metainfo, scale_factor=(1.0, 1.0)))]

    def run_two_stage(images: torch.Tensor) -> None:
        maps = model.extract_feat(images)
        if model.with_rpn:
            model.rpn_head(maps)
        test_cfg = model.test_cfg or {}
        num_proposals = test_cfg.get('rpn', {}).get('max_per_img', 1000)
        boxes = whole_image_box(model, shape).repeat(num_proposals, 1)
        # RoIAlign has no meta kernel, and its count does not depend on values
        maps = [torch.zeros(level.shape) for level in maps]
        model.roi_head(maps, [InstanceData(bboxes=boxes)], samples)

    forward: Callable[..., Any] = model
    if hasattr(model, 'roi_head'):
        forward = run_two_stage
    elif hasattr(model, 'backbone'):
        forward = partial(model, data_samples=samples, mode='tensor')
    channels = getattr(getattr(model, 'backbone', model), 'in_channels', 3)
    images = torch.zeros(1, channels, *shape, device=device)
    return count_flops(model, images, forward=forward)


def table_rows(model: nn.Module, flops: FlopCount) -> Iterator[list[str]]:
    """Yield cells of a table: its head, and a row for each part of a model and for
    all."""
    titles = ('parameters, M', 'MACs, G', *ATTENTION_KINDS)
    yield [f' {"part":<16}', *(f'{title:>17}' for title in titles)]
    for name in [*dict(model.named_children()), '']:
        params = sum(p.numel() for p in model.get_submodule(name).parameters())
        kinds = flops.by_kind(name)
        macs = [flops.total(name), *(kinds[kind] for kind in ATTENTION_KINDS)]
        if params or macs[0]:
            numbers = [f'{params / 1e6:.2f}', *(f'{count / 1e9:.3f}' for count in macs)]
            yield [f' {name or "all":<16}', *(f'{number:>17}' for number in numbers)]


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    with errors_in_one_line(*INPUT_ERRORS), quiet():
        cfg, whole = load_model(args)
        model = predicting_part(whole)
        shape = (args.shape[0], args.shape[-1]) if args.shape else default_shape(cfg)
        size = ' x '.join(map(str, shape))
        with error_in(cfg, f'config={args.config!r}, an image of {size}'):
            flops = count(model, shape)
        print(f'{args.config}, {type(whole).__name__}, one image of {size}')
        for row in table_rows(model, flops):
            print(*row, sep=' | ')
        rest = flops.without_softmax_attention() / 1e9
        print(f'MACs without softmax-attention products: {rest:.3f} G')


if __name__ == '__main__':
    main()
