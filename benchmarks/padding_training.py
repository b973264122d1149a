"""Trains small RetinaNets on images of several sizes, with their padding left as it is
or left out, and tests them on images alone.

Images of colored noise have circles, squares and triangles. The trainings of a seed
have the same initial weights, images, order and flips. Results are added to the file,
and trainings that it has are not repeated.

Images of 48 x 48 can also be trained without any padding, which is the control, and
BatchNorm can be kept in evaluation mode:

    python benchmarks/padding_training.py --sides one --padding 'left as it is' \\
        'left out' absent --norm-eval 0 1 --anchors image --steps 300 --out FILE
"""

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import common  # noqa: F401
import mmdet.models  # noqa: F401
import numpy as np
import torch
from mmdet.evaluation import CocoMetric
from mmdet.structures import DetDataSample
from mmengine.config import ConfigDict
from mmengine.registry import MODELS, DefaultScope
from mmengine.structures import InstanceData
from PIL import Image, ImageDraw

import mmlinattn.models  # noqa: F401
from mmlinattn.utils.log import quiet

CLASSES = ('circle', 'square', 'triangle')
CANVAS = 64
NUM_TRAIN, NUM_TEST, BATCH = 400, 150, 8
PADDING = ('left as it is', 'left out')
ABSENT = 'absent'
# sides are padded to multiples of this, as is usual for detectors, or to those that
# sides of 48 have anyway
DIVISOR, DIVISOR_OF_48 = 32, 16
ANCHORS = ('MMDetection', 'image')
# sides of images, in pixels: those of a batch are padded to the largest, and to
# multiples of 32
SIDES = dict(any=tuple(range(32, 65)), several=(32, 48, 64), one=(48,))
ARCH = dict(embed_dims=[16, 32, 64, 64], depths=[1] * 4, num_heads=[1, 1, 2, 2])
BACKBONES: dict[str, dict] = {
    'LinearSOFTPlusPlus': dict(
        type='mmlinattn.LinearSOFTPlusPlus', arch=ARCH, img_size=CANVAS
    ),
    'Swin, elfatt': dict(
        type='mmlinattn.SwinTransformer',
        attention='elfatt',
        arch=dict(embed_dims=16, depths=[1] * 4, num_heads=[2] * 4),
    ),
}
HEAD = dict(
    type='mmdet.RetinaHead',
    num_classes=len(CLASSES),
    in_channels=32,
    stacked_convs=2,
    feat_channels=32,
    anchor_generator=dict(
        type='mmdet.AnchorGenerator',
        octave_base_scale=2,
        scales_per_octave=2,
        ratios=[1.0],
        strides=[4, 8, 16, 32],
    ),
    bbox_coder=dict(type='mmdet.DeltaXYWHBBoxCoder'),
    loss_cls=dict(type='mmdet.FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25),
    loss_bbox=dict(type='mmdet.L1Loss'),
)
ASSIGNER = dict(
    type='mmdet.MaxIoUAssigner',
    pos_iou_thr=0.5,
    neg_iou_thr=0.4,
    min_pos_iou=0,
    ignore_iof_thr=-1,
)
TRAIN = dict(assigner=ASSIGNER, sampler=dict(type='mmdet.PseudoSampler'), pos_weight=-1)
TEST = dict(nms_pre=300, min_bbox_size=0, score_thr=0.02, max_per_img=30)
NORMALIZATION = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])


@dataclass(frozen=True)
class Training:
    """What tells two trainings apart.

    Attributes:
        model (str): One of ``BACKBONES``.
        padding (str): 'left as it is', 'left out' or 'absent', in training. Without
            any, tests have none either.
        anchors (str): 'MMDetection', those that begin in an image whose sides are
            rounded up to 32 pixels; 'image', those that begin in the image. Others are
            not trained.
        sides (str): A key of ``SIDES``.
        steps (int): Of eight images.
        rate (float): The largest learning rate.
        norm_eval (bool): Keeps BatchNorm in evaluation mode.
        seed (int): Of initial weights, order and flips.
    """

    model: str
    padding: str
    anchors: str
    sides: str
    steps: int
    rate: float
    norm_eval: bool
    seed: int


def draw_noise(random: np.random.Generator, height: int, width: int) -> Image.Image:
    """Colored noise of four scales."""
    noise = np.zeros((height, width, 3))
    for cell in (4, 8, 16, 32):
        coarse = random.normal(size=(3, height // cell + 2, width // cell + 2))
        for i, channel in enumerate(coarse.astype(np.float32)):
            resized = Image.fromarray(channel).resize((width, height), Image.BICUBIC)
            noise[..., i] += np.asarray(resized) * math.sqrt(cell)
    noise *= random.uniform(20, 50) / noise.std()
    noise += random.uniform(70, 170, 3)
    return Image.fromarray(noise.clip(0, 255).astype(np.uint8))


def draw(number: int, random: np.random.Generator, sides: tuple[int, ...]) -> dict:
    """Return an image with one to four shapes of 7 to 13 pixels."""
    height, width = random.choice(sides, 2).tolist()
    image = draw_noise(random, height, width)
    pen = ImageDraw.Draw(image)
    boxes, labels = [], []
    for _ in range(random.integers(1, 5)):
        side = int(random.integers(7, 14))
        x, y = (int(random.integers(0, extent - side)) for extent in (width, height))
        right, bottom = x + side - 1, y + side - 1
        label = int(random.integers(len(CLASSES)))
        color = tuple(random.integers(0, 256, 3).tolist())
        if label == 0:
            pen.ellipse((x, y, right, bottom), color)
        elif label == 1:
            pen.rectangle((x, y, right, bottom), color)
        else:
            pen.polygon(((x + side // 2, y), (x, bottom), (right, bottom)), color)
        boxes.append([x, y, x + side, y + side])
        labels.append(label)
    pixels = torch.from_numpy(np.asarray(image).transpose(2, 0, 1).copy())
    return dict(number=number, image=pixels, boxes=boxes, labels=labels)


def draw_all(count: int, seed: int, sides: tuple[int, ...]) -> list[dict]:
    random = np.random.default_rng(seed)
    return [draw(number, random, sides) for number in range(count)]


def batch_of(photos: list[dict], flips: Any = None) -> dict:
    """Return a batch as MMDetection loads it; some images are flipped."""
    images, samples = [], []
    for photo, flip in zip(photos, [False] * len(photos) if flips is None else flips):
        image, boxes = photo['image'], torch.tensor(photo['boxes'], dtype=torch.float32)
        size = tuple(image.shape[1:])
        if flip:
            image = image.flip(2)
            boxes[:, [0, 2]] = size[1] - boxes[:, [2, 0]]
        sample = DetDataSample(metainfo=dict(img_shape=size, ori_shape=size))
        sample.gt_instances = InstanceData(
            bboxes=boxes, labels=torch.tensor(photo['labels'])
        )
        images.append(image)
        samples.append(sample)
    return dict(inputs=images, data_samples=samples)


def build(model: str, seed: int, divisor: int = DIVISOR) -> torch.nn.Module:
    """Return a RetinaNet with random weights."""
    torch.manual_seed(seed)
    backbone = MODELS.build(BACKBONES[model])
    neck = dict(
        type='mmdet.FPN',
        in_channels=list(backbone.feature_channels),
        out_channels=32,
        num_outs=4,
    )
    cfg = ConfigDict(
        type='mmdet.RetinaNet',
        data_preprocessor=dict(
            type='mmdet.DetDataPreprocessor', pad_size_divisor=divisor, **NORMALIZATION
        ),
        backbone=BACKBONES[model],
        neck=neck,
        bbox_head=HEAD,
        train_cfg=dict(TRAIN, allowed_border=-1),
        test_cfg=dict(TEST, nms=dict(type='nms', iou_threshold=0.5)),
    )
    with DefaultScope.overwrite_default_scope('mmdet'), quiet():
        detector = MODELS.build(cfg)
        detector.init_weights()
    return detector


def losses(
    detector: torch.nn.Module, batch: dict, anchors: str = 'MMDetection'
) -> torch.Tensor:
    """Return losses of classes and boxes (2,), sums over the levels."""
    data = detector.data_preprocessor(batch, True)
    return losses_of(detector, data['inputs'], data['data_samples'], anchors)


def losses_of(
    detector: torch.nn.Module, images: torch.Tensor, samples: list, anchors: str
) -> torch.Tensor:
    """Return the losses of images (B, 3, H, W) that are padded."""
    if anchors == 'image':
        for sample in samples:
            sample.set_metainfo(dict(pad_shape=sample.img_shape))
    parts = detector.loss(images, samples)
    return torch.stack([sum(parts['loss_cls']), sum(parts['loss_bbox'])])


def fit(
    detector: torch.nn.Module, photos: list[dict], training: Training
) -> list[float]:
    """Train a detector, and return the loss of each step.

    The rate warms up in 60 steps, and falls by a cosine.
    """
    rate = training.rate
    optimizer = torch.optim.AdamW(detector.parameters(), lr=rate, weight_decay=0.05)
    random, order, history = np.random.default_rng(training.seed), [], []
    detector.train()
    for step in range(training.steps):
        if len(order) < BATCH:
            order = random.permutation(len(photos)).tolist()
        chosen, order = [photos[i] for i in order[:BATCH]], order[BATCH:]
        batch = batch_of(chosen, random.integers(0, 2, BATCH))
        fall = (1 + math.cos(math.pi * step / training.steps)) / 2
        for group in optimizer.param_groups:
            group['lr'] = rate * min(1, (step + 1) / 60) * (0.01 + 0.99 * fall)
        optimizer.zero_grad()
        loss = losses(detector, batch, training.anchors).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(detector.parameters(), 5.0)
        optimizer.step()
        history.append(float(loss))
    return history


@torch.no_grad()
def score(detector: torch.nn.Module, photos: list[dict]) -> dict:
    """AP, and mean losses of classes and boxes, of images one by one."""
    detector.eval()
    metric = CocoMetric(metric='bbox')
    metric.dataset_meta = dict(classes=CLASSES)
    values = []
    for photo in photos:
        values.append(losses(detector, batch_of([photo])))
        data = detector.data_preprocessor(batch_of([photo]), False)
        inputs, samples = data['inputs'], data['data_samples']
        (sample,) = detector.predict(inputs, samples, rescale=False)
        instances = [
            dict(bbox=box, bbox_label=label, ignore_flag=0)
            for box, label in zip(photo['boxes'], photo['labels'])
        ]
        outs = dict(img_id=photo['number'], ori_shape=sample.ori_shape)
        predicted = sample.pred_instances.to_dict()
        metric.process({}, [dict(outs, pred_instances=predicted, instances=instances)])
    with quiet():
        # it has no entry where nothing is found
        ap = metric.evaluate(len(photos)).get('coco/bbox_mAP', 0.0)
    classes, boxes = torch.stack(values).mean(0).tolist()
    return dict(AP=ap, classes=round(classes, 4), boxes=round(boxes, 4))


@torch.no_grad()
def differences(detector: torch.nn.Module, photos: list[dict]) -> list[float]:
    """Return how much the maps of images on a canvas of the largest size, with the
    padding as it is, differ from those of the images alone, by stage: the median over
    images of the difference's norm, divided by the norm."""
    detector.eval()
    backbone, rows = detector.backbone, []
    for photo in photos:
        data = detector.data_preprocessor(batch_of([photo]), False)
        height, width = photo['image'].shape[1:]
        x = data['inputs'][..., :height, :width]
        if (height, width) == (CANVAS, CANVAS):
            continue
        canvas = torch.nn.functional.pad(x, (0, CANVAS - width, 0, CANVAS - height))
        pairs = zip(backbone.run(x), backbone.run(canvas))
        row = []
        for alone, padded in pairs:
            valid = padded[..., : alone.size(2), : alone.size(3)]
            row.append(float((valid - alone).norm() / alone.norm()))
        rows.append(row)
    return np.median(rows, axis=0).round(3).tolist()


def gradient(
    detector: torch.nn.Module, photos: list[dict], canvas: bool
) -> torch.Tensor:
    """Return the gradient of the backbone (n,), a sum over images, each alone or on a
    canvas of the largest size."""
    detector.zero_grad()
    for photo in photos:
        data = detector.data_preprocessor(batch_of([photo]), True)
        x = data['inputs']
        if canvas:
            below, right = CANVAS - x.size(2), CANVAS - x.size(3)
            x = torch.nn.functional.pad(x, (0, right, 0, below))
        loss = losses_of(detector, x, data['data_samples'], 'image')
        loss.sum().backward()
    grads = [
        x.grad.flatten() for x in detector.backbone.parameters() if x.requires_grad
    ]
    return torch.cat(grads)


def similarities(detector: torch.nn.Module, photos: list[dict]) -> dict[str, float]:
    """Return the cosine of the gradient of images with padding and that of images
    alone, by what is done with padding. BatchNorm has fixed statistics."""
    detector.train()
    backbone = detector.backbone
    mask, norm_eval = backbone.mask_padding, backbone.norm_eval
    backbone.norm_eval, backbone.mask_padding = True, True
    backbone.train()
    photos = [x for x in photos if x['image'].size(1) < CANVAS][:16]
    alone, cosines = gradient(detector, photos, False), {}
    for name in PADDING:
        backbone.mask_padding = name == 'left out'
        padded = gradient(detector, photos, True)
        cosine = torch.nn.functional.cosine_similarity(alone, padded, dim=0)
        cosines[name] = round(float(cosine), 3)
    backbone.mask_padding, backbone.norm_eval = mask, norm_eval
    backbone.train()
    detector.zero_grad()
    return cosines


def measure(training: Training) -> dict:
    """Train and tests a detector."""
    torch.set_num_threads(1)
    sides = SIDES[training.sides]
    photos, tests = draw_all(NUM_TRAIN, 0, sides), draw_all(NUM_TEST, 1, sides)
    is_absent = training.padding == ABSENT
    if is_absent and any(side % DIVISOR_OF_48 for side in sides):
        raise ValueError(f'images of sides {sides} can not be trained without padding')
    divisor = DIVISOR_OF_48 if is_absent else DIVISOR
    detector = build(training.model, training.seed, divisor)
    detector.backbone.mask_padding = training.padding == 'left out'
    detector.backbone.norm_eval = training.norm_eval
    row: dict[str, Any] = asdict(training)
    row['cosines before'] = similarities(detector, photos)
    began = time.process_time()
    history = fit(detector, photos, training)
    row['seconds_per_step'] = round((time.process_time() - began) / training.steps, 3)
    parts = np.array_split(history, min(20, len(history)))
    row['losses'] = [round(float(part.mean()), 3) for part in parts]
    row['cosines after'] = similarities(detector, photos)
    row['differences'] = differences(detector, tests[:60])
    for name, mask in zip(PADDING, (False, True)):
        detector.backbone.mask_padding = mask
        row[f'tested {name}'] = score(detector, tests)
    row['of training images'] = score(detector, photos[: NUM_TEST // 2])
    return row


def write(path: Path, rows: list[dict]) -> None:
    """Write a training a line, in order."""
    keys = [field.name for field in fields(Training)]
    rows.sort(key=lambda row: [row[key] for key in keys])
    lines = ',\n  '.join(json.dumps(row) for row in rows)
    first = f' "torch": {json.dumps(torch.__version__)},\n "rows": [\n  '
    path.write_text('{\n' + first + lines + '\n ]\n}\n')


def main(argv: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--models', nargs='+', choices=BACKBONES, default=[*BACKBONES])
    choices = [*PADDING, ABSENT]
    parser.add_argument('--padding', nargs='+', choices=choices, default=[*PADDING])
    parser.add_argument('--anchors', nargs='+', choices=ANCHORS, default=[*ANCHORS])
    parser.add_argument('--sides', nargs='+', choices=SIDES, default=[*SIDES])
    parser.add_argument('--seeds', nargs='+', type=int, default=[0, 1, 2])
    parser.add_argument('--steps', type=int, default=400)
    parser.add_argument('--rates', nargs='+', type=float, default=[2e-3])
    parser.add_argument(
        '--norm-eval', nargs='+', type=int, choices=(0, 1), default=[0], metavar='0|1'
    )
    parser.add_argument('--out', type=Path, required=True)
    args = parser.parse_args(argv)
    rows = json.loads(args.out.read_text())['rows'] if args.out.exists() else []
    grid = product(
        args.seeds,
        args.models,
        args.sides,
        args.anchors,
        args.rates,
        args.norm_eval,
        args.padding,
    )
    for seed, model, sides, anchors, rate, norm_eval, padding in grid:
        training = Training(
            model=model,
            padding=padding,
            anchors=anchors,
            sides=sides,
            steps=args.steps,
            rate=rate,
            norm_eval=bool(norm_eval),
            seed=seed,
        )
        if any(asdict(training).items() <= row.items() for row in rows):
            continue
        rows.append(measure(training))
        print(rows[-1], flush=True)
        write(args.out, rows)


if __name__ == '__main__':
    main()
