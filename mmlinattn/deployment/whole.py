"""A photograph to what a model says about it: boxes, masks, label maps, classes.

What mm libraries do in Python around a network is written out here, so that a trace of
it holds for every size and every number of boxes. Letters: N boxes, K classes, A
anchors at a place.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn
from torchvision.ops import nms, roi_align

from .outputs import ExportedModel
from .pixels import Photo, Preparation


class WholeModel(ExportedModel):
    """An image of 8-bit integers to predictions in its own pixels.

    Supported are detectors with anchors and deltas (RetinaNet), two-stage detectors
    (Faster R-CNN, Mask R-CNN), segmentors with one decoder head (UperNet; whole images
    or sliding windows), and classifiers. Outputs:

    - detectors: ``boxes`` (N, 4) as x1, y1, x2, y2, ``scores`` (N,), ``labels`` (N,),
      best first, and, with a mask head, ``masks`` (N, h, w), the probability that a
      cell of a box is the object,
    - segmentors: ``label_map`` (H, W) in int32,
    - classifiers: ``scores`` (K,).

    Args:
        model (nn.Module): A detector, segmentor or classifier. It is copied.
        pipeline (Sequence[dict]): The config's test pipeline.
        preprocessor (dict): The config's data preprocessor.

    Raises:
        ValueError: If a part is none of those that can be written to a file.
    """

    input_name = 'image'

    def __init__(
        self, model: nn.Module, pipeline: Sequence[dict], preprocessor: dict
    ) -> None:
        super().__init__(model)
        self.prepare = Preparation(pipeline, preprocessor)

    def check(self, model: Any) -> None:
        _check(model)

    def example(self, shape: tuple[int, int], batch: int) -> Tensor:
        return torch.zeros(*shape, 3, dtype=torch.uint8)

    def axes(self, example: Tensor) -> dict[str, dict[int, str]]:
        names = [name for name, _ in self.named_outputs(example)]
        free = {'label_map': {0: 'height', 1: 'width'}, 'scores': {}}
        if 'boxes' in names:
            free['scores'] = {0: 'boxes'}
        sides = {0: 'height', 1: 'width'}
        return {
            self.input_name: sides, **{x: free.get(x, {0: 'boxes'}) for x in names}
        }

    def named_outputs(self, image: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Names and values of the outputs for an image (H, W, 3), RGB, uint8."""
        model: Any = self.model
        photo = self.prepare(image)
        if hasattr(model, 'decode_head'):
            yield 'label_map', segment(model, photo)
            return
        maps = model.extract_feat(photo.pixels)
        if hasattr(model, 'roi_head'):
            found = two_stages(model, maps, photo)
        elif hasattr(model, 'bbox_head'):
            head = model.bbox_head
            found = dense(head, head(maps), photo.bounds, model.test_cfg, photo.factors)
        else:
            yield 'scores', model.head(maps).softmax(-1)[0]
            return
        for name, value in found._asdict().items():
            if value is not None:
                yield name, value


class Boxes(NamedTuple):
    """What a detector finds, best first; outputs of a file by these names."""

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    masks: Optional[Tensor] = None


def dense(
    head: Any, levels: Any, bounds: Tensor, cfg: Any, factors: Optional[Tensor] = None
) -> Boxes:
    """Boxes of a head with anchors and deltas.

    Args:
        head (nn.Module): The head.
        levels (tuple[list[Tensor]]): Its maps of scores (1, A * K, H_i, W_i) and of
            deltas (1, A * 4, H_i, W_i).
        bounds (Tensor): Largest x, y, x, y, (4,).
        cfg (dict): Its ``test_cfg``.
        factors (Tensor, optional): Boxes are multiplied by these (4,). Without, the
            head proposes regions: its labels are levels, which suppress boxes of
            their own only.
    """
    anchors = head.prior_generator.grid_priors(
        [x.shape[-2:] for x in levels[0]], device='cpu'
    )
    found = []
    for level, (logits, deltas, priors) in enumerate(zip(*levels, anchors)):
        logits = logits[0].permute(1, 2, 0).reshape(-1, head.cls_out_channels)
        scores = logits.sigmoid() if head.use_sigmoid_cls else logits.softmax(-1)
        num_classes = head.cls_out_channels - (not head.use_sigmoid_cls)
        scores = scores[:, :num_classes].flatten()
        if factors is not None:
            kept = (scores > cfg.get('score_thr', 0)).nonzero()[:, 0]
        else:
            kept = torch.arange(scores.shape[0])
        most = torch.minimum(_length(kept), torch.tensor(cfg.get('nms_pre', 2**31)))
        scores, best = scores[kept].topk(most)
        kept = kept[best]
        place = torch.div(kept, num_classes, rounding_mode='trunc')
        labels = kept - place * num_classes if factors is not None else 0 * kept + level
        deltas = deltas[0].permute(1, 2, 0).reshape(-1, 4)[place]
        boxes = decode(head.bbox_coder, priors[place], deltas, bounds)
        found.append((boxes, scores, labels))
    boxes, scores, labels = map(torch.cat, zip(*found))
    if factors is not None:
        boxes = boxes * factors
    least = cfg.get('min_bbox_size', -1)
    if least >= 0:
        fits = ((boxes[:, 2:] - boxes[:, :2]) > least).all(1).nonzero()[:, 0]
        boxes, scores, labels = boxes[fits], scores[fits], labels[fits]
    return suppress(boxes, scores, labels, cfg)


def two_stages(model: Any, maps: Sequence[Tensor], photo: Photo) -> Boxes:
    """Boxes, and masks if there is a mask head, of Faster and Mask R-CNN."""
    rpn, roi, cfg = model.rpn_head, model.roi_head, model.test_cfg
    proposed = dense(rpn, rpn(maps), photo.bounds, cfg.rpn).boxes
    crops = extract(roi.bbox_roi_extractor, maps, proposed)
    logits, deltas = roi.bbox_head(crops)
    num_classes = roi.bbox_head.num_classes
    scores = logits.softmax(-1)[:, :num_classes].flatten()
    kept = (scores > cfg.rcnn.score_thr).nonzero()[:, 0]
    place = torch.div(kept, num_classes, rounding_mode='trunc')
    deltas = deltas.reshape(-1, 4)
    deltas = deltas[place if roi.bbox_head.reg_class_agnostic else kept]
    boxes = decode(roi.bbox_head.bbox_coder, proposed[place], deltas, photo.bounds)
    labels = kept - place * num_classes
    # mmdet suppresses boxes in pixels of the image as it came only if there are no masks
    if not roi.with_mask:
        return suppress(boxes * photo.factors, scores[kept], labels, cfg.rcnn)
    found = suppress(boxes, scores[kept], labels, cfg.rcnn)
    crops = extract(roi.mask_roi_extractor, maps, found.boxes)
    masks = roi.mask_head(crops).sigmoid()
    channel = 0 * found.labels if roi.mask_head.class_agnostic else found.labels
    masks = masks[torch.arange(_length(channel)), channel]
    return found._replace(boxes=found.boxes * photo.factors, masks=masks)


def decode(coder: Any, priors: Tensor, deltas: Tensor, bounds: Tensor) -> Tensor:
    """Boxes (N, 4) from anchors and deltas (N, 4), as mmdet's DeltaXYWHBBoxCoder."""
    deltas = deltas * deltas.new_tensor(coder.stds) + deltas.new_tensor(coder.means)
    sides = priors[:, 2:] - priors[:, :2]
    centers = (priors[:, :2] + priors[:, 2:]) * 0.5 + sides * deltas[:, :2]
    most = abs(math.log(16 / 1000))
    sides = sides * deltas[:, 2:].clamp(-most, most).exp()
    boxes = torch.cat([centers - sides * 0.5, centers + sides * 0.5], -1)
    return torch.minimum(boxes.clamp(min=0), bounds)


def suppress(boxes: Tensor, scores: Tensor, labels: Tensor, cfg: Any) -> Boxes:
    """The best boxes (N, 4), none of which covers another one of its label.

    Boxes of different labels are moved apart, so that one call of ONNX's operator
    serves all of them.
    """
    largest = torch.cat([boxes.flatten(), boxes.new_zeros(1)]).max()
    apart = boxes + (labels * (largest + 1))[:, None]
    kept = nms(apart, scores, cfg.nms.iou_threshold)[: cfg.max_per_img]
    return Boxes(boxes[kept], scores[kept], labels[kept])


def extract(extractor: Any, maps: Sequence[Tensor], boxes: Tensor) -> Tensor:
    """Crops (N, C, h, w) of boxes (N, 4), each from the level that fits its size."""
    rois = torch.cat([boxes.new_zeros(_length(boxes), 1), boxes], 1)
    layers = extractor.roi_layers
    levels = extractor.map_roi_levels(rois, len(layers))
    crops, order = [], []
    for level, (layer, features) in enumerate(zip(layers, maps)):
        index = (levels == level).nonzero()[:, 0]
        order.append(index)
        crops.append(
            roi_align(
                features,
                rois[index],
                layer.output_size,
                layer.spatial_scale,
                layer.sampling_ratio,
                layer.aligned,
            )
        )
    return torch.cat(crops)[torch.cat(order).sort()[1]]


def segment(model: Any, photo: Photo) -> Tensor:
    """The label map (H, W) of a segmentor, as mmseg's whole and slide inference."""
    size = photo.pixels.shape[-2:]
    if model.test_cfg.mode == 'slide':
        logits = slide(model, photo.pixels)
    else:
        logits = _resize(model, model.decode_head(model.extract_feat(photo.pixels)), size)
    logits = logits[:, :, : photo.size[0], : photo.size[1]]
    logits = _resize(model, logits, photo.original)[0]
    if model.out_channels == 1:
        labels = (logits[0].sigmoid() > model.decode_head.threshold).int()
    else:
        labels = logits.argmax(0).int()
    return labels


def slide(model: Any, pixels: Tensor) -> Tensor:
    """The mean of logits (1, K, H, W) over windows, which run as one batch."""
    sides, windows, sums = torch._shape_as_tensor(pixels)[2:], pixels[0], []
    shape: list[Any] = []
    for axis in (0, 1):
        stride, side = model.test_cfg.stride[axis], sides[axis]
        crop = torch.minimum(side, torch.tensor(model.test_cfg.crop_size[axis]))
        count = torch.div(side - crop + stride - 1, stride, rounding_mode='trunc') + 1
        starts = torch.minimum(torch.arange(count) * stride, side - crop)
        places = (starts[:, None] + torch.arange(crop)).flatten()
        windows = windows.index_select(axis + 1, places)
        sums.append((torch.arange(side)[:, None] == places).float())
        shape += [count, crop]
    rows, high, columns, wide = shape
    windows = windows.reshape(-1, rows, high, columns, wide).permute(1, 3, 0, 2, 4)
    windows = windows.flatten(0, 1)
    logits = model.decode_head(model.extract_feat(windows))
    logits = _resize(model, logits, (high, wide))
    logits = logits.unflatten(0, (rows, columns)).permute(2, 0, 3, 1, 4)
    logits = logits.reshape(-1, rows * high, columns * wide)
    down, across = sums
    total = down @ logits @ across.t()
    return (total / (down.sum(1)[:, None] * across.sum(1)))[None]


def _resize(model: Any, logits: Tensor, size: Any) -> Tensor:
    return nnf.interpolate(
        logits,
        size=(size[0], size[1]),
        mode='bilinear',
        align_corners=model.align_corners,
    )


def _length(x: Tensor) -> Tensor:
    return torch._shape_as_tensor(x)[0]


def _check(model: Any) -> None:
    """Raises a ValueError that names the first part that no file can hold."""

    def must(has: Any, text: str) -> None:
        if not has:
            raise ValueError(f'{type(model).__name__} {text}')

    if hasattr(model, 'decode_head'):
        must(isinstance(model.decode_head, nn.Module), 'has no decoder head')
        must(not isinstance(model.decode_head, nn.ModuleList), 'has decoder heads')
        own = _origin(model, 'predict') + _origin(model.decode_head, 'predict')
        must(own == 'EncoderDecoderBaseDecodeHead', 'decodes in a way of its own')
        return
    heads = [getattr(model, x, None) for x in ('bbox_head', 'rpn_head')]
    for head in filter(None, heads):
        kind = type(head).__name__
        coder = type(getattr(head, 'bbox_coder', None)).__name__
        own = _origin(head, '_predict_by_feat_single')
        must(coder == 'DeltaXYWHBBoxCoder', f'has no boxes from deltas in its {kind}')
        must(own in ('BaseDenseHead', 'RPNHead'), f'decodes boxes as its {kind} does')


def _origin(part: Any, method: str) -> str:
    """The class that defines a method of an object."""
    return getattr(type(part), method).__qualname__.partition('.')[0]
