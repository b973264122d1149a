"""What models learn from photos: classes, boxes, or a class for each pixel.

A task has its photos as arrays, builds models, takes losses, and scores models. Those
of boxes and pixels start from a classifier's backbone.
"""

import contextlib
import io
from itertools import chain

import numpy as np
import torch
from common import ROOT
from side_by_side.models import initialized
from torch import nn
from torch.nn.functional import cross_entropy, interpolate

from mmlinattn.registry import build_model
from mmlinattn.utils import load_config
from mmlinattn_tools.own_data import UNLABELED

from .data import Photos, random_crops

MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)
CHANNELS = 64  # of necks and heads
GROUPS = 256  # of photos that are left out at once


def normalized(images):
    """(B, 3, H, W), 0 to 255, as float32 with ImageNet's statistics."""
    mean, std = (images.new_tensor(x, dtype=torch.float32) for x in (MEAN, STD))
    return (images.float() - mean[:, None, None]) / std[:, None, None]


def as_tensor(pixels):
    """(B, H, W, 3) uint8 to (B, 3, H, W)."""
    return torch.from_numpy(np.array(pixels)).permute(0, 3, 1, 2)


def batches(pixels, size, model):
    """Images as tensors, where a model is, some at a time."""
    device = next(model.parameters()).device
    for i in range(0, len(pixels), size):
        yield as_tensor(pixels[i : i + size]).to(device)


class Classifier(nn.Module):
    """A backbone, from its config, and a linear layer on its mean features or class
    token."""

    prepare = staticmethod(normalized)

    def __init__(self, backbone, num_classes):
        super().__init__()
        self.backbone = initialized(build_model(backbone))
        self.head = nn.Linear(self.backbone.feature_channels[-1], num_classes)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, images):
        """(B, 3, H, W), 0 to 255, to (B, classes)."""
        out = self.backbone(self.prepare(images))[-1]
        return self.head(out.mean((2, 3)) if out.dim() == 4 else out)


class Segmentor(nn.Module):
    """A backbone and the head of UperNet."""

    def __init__(self, backbone, num_classes):
        from mmseg.models import UPerHead

        super().__init__()
        self.backbone = initialized(build_model(backbone))
        dims = self.backbone.feature_channels
        head = dict(in_channels=dims, in_index=[*range(len(dims))], channels=CHANNELS)
        head.update(norm_cfg=dict(type='BN'), align_corners=False)
        self.head = initialized(UPerHead(num_classes=num_classes, **head))

    def forward(self, images):
        """(B, 3, H, W), 0 to 255, to (B, classes, H, W)."""
        logits = self.head(self.backbone(normalized(images)))
        return interpolate(logits, images.shape[2:], mode='bilinear')


def detector(backbone, num_classes):
    """Our RetinaNet, made small: on maps of stride 8 to 64, for small objects."""
    import mmdet.models  # noqa: F401 (registers)
    from mmdet.registry import MODELS
    from mmengine.registry import DefaultScope

    cfg = load_config(str(ROOT / 'configs/_base_/models/retinanet_softpp-t.py')).model
    cfg.bbox_head.update(num_classes=num_classes, stacked_convs=2)
    cfg.bbox_head.update(in_channels=CHANNELS, feat_channels=CHANNELS)
    anchors = dict(octave_base_scale=2, strides=[8, 16, 32, 64])
    cfg.bbox_head.anchor_generator.update(anchors)
    dims = backbone['arch']['embed_dims']
    neck = dict(in_channels=dims, out_channels=CHANNELS, start_level=1, num_outs=4)
    cfg.backbone = dict(backbone, type=f'mmlinattn.{backbone["type"]}')
    cfg.neck.update(neck, add_extra_convs='on_output')
    with DefaultScope.overwrite_default_scope('mmdet'):
        return initialized(MODELS.build(cfg))


class Classes(Photos):
    """Photos in folders that are named after their classes."""

    kind, model = 'cls', Classifier

    def loss(self, model, run, arrays, index, generator):
        """Of random crops of some photos."""
        device = next(model.parameters()).device
        recipe, (pixels, labels) = run.recipe, arrays
        images = random_crops(pixels[index], recipe['side'], recipe['crop'], generator)
        return cross_entropy(
            model(images.to(device)),
            torch.from_numpy(labels[index]).to(device),
            label_smoothing=recipe['smoothing'],
        )

    @torch.no_grad()
    def score(self, model, split, side, batch=50, limit=None):
        """Top-1 accuracy, and whether each photo is classified right, as hexadecimal
        digits of bits; of the first photos up to a limit."""
        pixels, labels = (x[:limit] for x in self.arrays(split, side))
        found = [model(x).argmax(1).cpu() for x in batches(pixels, batch, model)]
        right = torch.cat(found).numpy() == labels
        bits = np.packbits(right).tobytes().hex()
        return dict(score=float(right.mean()), right=bits, photos=len(right))


class Pixels(Photos):
    """Photos and label maps; the score is the mean IoU."""

    kind, model = 'seg', Segmentor

    def loss(self, model, run, arrays, index, generator):
        device = next(model.parameters()).device
        pixels, labels = (x[index].copy() for x in arrays)
        flipped = torch.rand(len(index), generator=generator).numpy() < 0.5
        for x in (pixels, labels):
            x[flipped] = x[flipped, :, ::-1]
        return cross_entropy(
            model(as_tensor(pixels).to(device)),
            torch.from_numpy(labels).long().to(device),
            ignore_index=UNLABELED,
        )

    @torch.no_grad()
    def score(self, model, split, side, batch=4):
        from mmseg.evaluation import IoUMetric

        pixels, labels = self.arrays(split, side)
        num, areas = len(self.classes), []
        batched = (model(x).argmax(1).cpu() for x in batches(pixels, batch, model))
        for found, truth in zip(chain.from_iterable(batched), labels):
            truth = torch.tensor(truth).long()
            of_photo = IoUMetric.intersect_and_union(found, truth, num, UNLABELED)
            areas.append(torch.stack(of_photo).double())
        areas = torch.stack(areas)  # (N, 4, classes)
        total = areas.sum(0)

        def mean_iou(left_out):
            kept = total - areas[left_out].sum(0)
            intersection, union = kept[:2, kept[3] > 0]
            return float((intersection / union).mean())

        return by_photo(mean_iou, len(labels))


class Boxes(Photos):
    """Photos and boxes; the score is COCO's AP at an IoU of 0.5."""

    kind, model = 'det', staticmethod(detector)

    def samples(self, boxes, shape, device):
        """What mmdet's detectors take besides images, with each photo's boxes."""
        from mmdet.structures import DetDataSample
        from mmengine.structures import InstanceData

        keys = ('img_shape', 'pad_shape', 'ori_shape', 'batch_input_shape')
        about = dict(dict.fromkeys(keys, shape), scale_factor=(1.0, 1.0))
        found = []
        for rows in boxes:
            of = torch.tensor(rows, device=device).view(-1, 5)
            truth = InstanceData(bboxes=of[:, :4].float(), labels=of[:, 4].long())
            found.append(DetDataSample(metainfo=about, gt_instances=truth))
        return found

    def loss(self, model, run, arrays, index, generator):
        device = next(model.parameters()).device
        pixels = arrays[0][index].copy()
        boxes = [np.array(arrays[1][i], float).reshape(-1, 5) for i in index]
        width = pixels.shape[2]
        for i in np.flatnonzero(torch.rand(len(index), generator=generator) < 0.5):
            pixels[i] = pixels[i, :, ::-1]
            boxes[i][:, [0, 2]] = width - boxes[i][:, [2, 0]]
        samples = self.samples(boxes, pixels.shape[1:3], device)
        losses = model.loss(normalized(as_tensor(pixels).to(device)), samples)
        return sum(sum(x) if isinstance(x, list) else x for x in losses.values())

    @torch.no_grad()
    def score(self, model, split, side, batch=8):
        pixels, boxes = self.arrays(split, side)
        found = []
        for x in batches(pixels, batch, model):
            samples = self.samples([[]] * len(x), pixels.shape[1:3], x.device)
            for sample in model.predict(normalized(x), samples, rescale=False):
                of = sample.pred_instances.cpu()
                columns = of.bboxes, of.labels[:, None], of.scores[:, None]
                found.append(torch.cat(columns, 1).tolist())
        return average_precision(boxes, found, len(self.classes))


def average_precision(boxes, found, num_classes):
    """COCO's AP at an IoU of 0.5, see :func:`by_photo`, and 'ap', over all IoUs."""
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCOeval(*(as_coco(x, num_classes) for x in (boxes, found)), 'bbox')
        coco.params.areaRng, coco.params.areaRngLbl = [[0, 1e10]], ['all']
        coco.params.maxDets = [100]
        coco.evaluate()
        matches = coco.evalImgs  # of each class, all photos

        def precisions(left_out):
            coco.evalImgs = [
                None if i % len(boxes) in left_out else x for i, x in enumerate(matches)
            ]
            coco.accumulate()
            found = coco.eval['precision'].squeeze((3, 4))  # (IoUs, recalls, classes)
            return found[..., (found > -1).all((0, 1))].mean((1, 2))

        values = by_photo(lambda left_out: float(precisions(left_out)[0]), len(boxes))
        return dict(values, ap=float(precisions([]).mean()))


def as_coco(rows_of_photos, num_classes):
    """Boxes (x1, y1, x2, y2, class), with a score if they are found, of each photo."""
    from pycocotools.coco import COCO

    coco, annotations = COCO(), []
    for photo, rows in enumerate(rows_of_photos):
        for left, top, right, bottom, label, *score in rows:
            size = right - left, bottom - top
            box = dict(bbox=[left, top, *size], area=size[0] * size[1], iscrowd=0)
            box.update(id=len(annotations) + 1, image_id=photo, category_id=int(label))
            annotations.append(dict(box, score=sum(score)))
    nums = dict(images=len(rows_of_photos), categories=num_classes)
    coco.dataset = {key: [dict(id=i) for i in range(num)] for key, num in nums.items()}
    coco.dataset['annotations'] = annotations
    coco.createIndex()
    return coco


def by_photo(score, num):
    """The score of a number of photos, a function of those left out, and by the
    jackknife 'values' of photos, or of :data:`GROUPS` of them: when drawn again, their
    score is nearly the mean."""
    every, groups = score([]), min(num, GROUPS)
    left_out = [range(i, num, groups) for i in range(groups)]
    others = np.array([score([*x]) if num > 1 else every for x in left_out])
    values = every + (groups - 1) * (others.mean() - others)
    return dict(score=every, photos=num, values=values.round(4).tolist())


TASKS = {'imagenette': Classes, 'cifar10': Classes, 'bccd': Boxes, 'camvid': Pixels}
