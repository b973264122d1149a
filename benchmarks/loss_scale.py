"""Trains Mask R-CNN in float16 for some steps, and notes the loss scale, which steps
were skipped, and losses and weights that are not finite.

Images have colored rectangles of three classes on noise. Rates warm up in the first
half. A model can be trained in half precision if the scale settles, and few steps are
skipped after the first ones.

    python benchmarks/loss_scale.py --steps 200 --out docs/benchmarks/loss_scale.json
"""

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import common  # noqa: F401
import numpy as np
import torch
from mmengine.optim import OptimWrapper, build_optim_wrapper
from mmengine.registry import DefaultScope
from mmengine.structures import InstanceData
from rich.progress import track
from side_by_side.models import CONFIGS, Detector, detector

from mmlinattn.utils import load_config
from mmlinattn.utils.log import quiet

MODELS = {
    'SOFT++-T': 'soft/mask-rcnn_softpp-t_fpn_1x_coco.py',
    'SOFT++-T, linear': 'soft/mask-rcnn_softpp-t-linear_fpn_1x_coco.py',
    'MAViT-T': 'mavit/mask-rcnn_mavit-t_fpn_1x_coco.py',
    'H-ViT^3-T': 'vittt/mask-rcnn_hvittt-t_fpn_ms-crop-1x_coco.py',
    'RAVLT-T': 'ravlt/mask-rcnn_ravlt-t_fpn_1x_coco.py',
}
# objects of an image, and classes, one for each color
NUM_OBJECTS, NUM_CLASSES = 8, 3


@dataclass
class Record:
    """What happened in a training.

    Attributes:
        model (str): Name of the model.
        losses (list[float]): One a step.
        scales (list[float]): Loss scale after each step.
        skipped (list[int]): Steps whose gradients were not finite.
        weights_not_finite (list[str]): At the end.
    """

    model: str
    losses: list[float] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    weights_not_finite: list[str] = field(default_factory=list)


def build(config: str, device: str) -> tuple[Detector, OptimWrapper]:
    """Return the detector of a config, and its optimizer with a loss scale (none on a
    CPU)."""
    torch.manual_seed(0)
    model = detector(config)().to(device).train()
    cfg = load_config(str(CONFIGS / config))
    if device == 'cuda':
        cfg.optim_wrapper.update(type='AmpOptimWrapper', loss_scale='dynamic')
    else:
        cfg.optim_wrapper.type = 'OptimWrapper'
    scope = DefaultScope.overwrite_default_scope(cfg.default_scope)
    with scope, quiet():  # a line for each parameter
        return model, build_optim_wrapper(model.detector, cfg.optim_wrapper)


def draw_sample(random: np.random.Generator, side: int) -> tuple[torch.Tensor, Any]:
    """Return an image (3, side, side) with rectangles, and what a data set says of
    it."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks

    image = random.integers(0, 90, (3, side, side), dtype=np.uint8)
    masks = np.zeros((NUM_OBJECTS, side, side), np.uint8)
    labels = random.integers(0, NUM_CLASSES, NUM_OBJECTS)
    boxes = []
    for mask, label in zip(masks, labels):
        width, height = random.integers(side // 25, side // 3, 2)
        left, top = random.integers(0, (side - width, side - height))
        place = slice(top, top + height), slice(left, left + width)
        image[(slice(None), *place)] = 60
        image[(label, *place)] = 230
        mask[place] = 1
        boxes.append((left, top, left + width, top + height))
    shapes = ('img_shape', 'ori_shape', 'pad_shape', 'batch_input_shape')
    sample = DetDataSample(metainfo=dict.fromkeys(shapes, (side, side)))
    sample.gt_instances = InstanceData(
        bboxes=torch.tensor(boxes, dtype=torch.float32),
        labels=torch.from_numpy(labels),
        masks=BitmapMasks(masks, side, side),
    )
    return torch.from_numpy(image), sample


def train(name: str, num_steps: int, side: int, device: str) -> Record:
    """Train on batches of two images."""
    model, optimizer = build(MODELS[name], device)
    scaler = getattr(optimizer, 'loss_scaler', None)
    rates = [group['lr'] for group in optimizer.param_groups]
    random, record = np.random.default_rng(0), Record(name)
    for step in track(range(num_steps), description=name):
        for group, rate in zip(optimizer.param_groups, rates):
            group['lr'] = rate * min(1, 2 * (step + 1) / num_steps)
        images, samples = zip(*(draw_sample(random, side) for _ in range(2)))
        batch = dict(inputs=list(images), data_samples=list(samples))
        before = scaler.get_scale() if scaler else 1.0
        with optimizer.optim_context(model.detector):
            loss = model(batch)
        optimizer.update_params(loss)
        record.losses.append(round(float(loss), 4))
        record.scales.append(scaler.get_scale() if scaler else 1.0)
        if record.scales[-1] < before:
            record.skipped.append(step)
    record.weights_not_finite = [
        key
        for key, weight in model.detector.named_parameters()
        if not weight.isfinite().all()
    ]
    return record


def describe(record: Record) -> str:
    """Return a line on a training."""
    tenth = max(len(record.losses) // 10, 1)
    first, last = (
        np.mean(part) for part in (record.losses[:tenth], record.losses[-tenth:])
    )
    return (
        f'{record.model}: loss {first:.2f} -> {last:.2f}, steps skipped: '
        f'{record.skipped}, scale {record.scales[-1]:.0f}, weights not finite: '
        f'{record.weights_not_finite}'
    )


def main(argv: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('--side', type=int, default=512, help='of images, in pixels')
    parser.add_argument('--models', nargs='+', choices=MODELS, default=[*MODELS])
    parser.add_argument('--out', type=Path)
    args = parser.parse_args(argv)
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    records = []
    for name in args.models:
        records.append(train(name, args.steps, args.side, device))
        print(describe(records[-1]), flush=True)
        if args.out:
            gpu = torch.cuda.get_device_name() if device == 'cuda' else 'none: float32'
            results = dict(gpu=gpu, torch=torch.__version__, side=args.side)
            results['rows'] = [asdict(record) for record in records]
            args.out.write_text(json.dumps(results, indent=1) + '\n')


if __name__ == '__main__':
    main()
