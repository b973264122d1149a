"""A whole model: from an image to boxes, masks, a label map or scores of classes.

The steps that mm libraries take in Python after a network are written out here, so that
their trace holds for every size and every number of boxes. Letters: N boxes, K classes,
A anchors at a place.
"""

import math
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn
from torchvision.ops import nms, roi_align

from mmlinattn.deployment.outputs import ExportedModel

from .pixels import Photo, Preparation, steps


class _Part(NamedTuple):
    """A part of a model that a file can hold: the class that must define the methods
    which process its maps, because a subclass's own could do anything, and options."""

    owner: str
    methods: tuple[str, ...]
    options: dict[str, Any] = {}

    def predicts_like(self, part: Any) -> bool:
        """Return True if the class of a part has these methods of the owner, and its
        options are these: a qualified name says which class defines a method."""
        for name in self.methods:
            method = getattr(type(part), name, None)
            if getattr(method, '__qualname__', '') != f'{self.owner}.{name}':
                return False
        return all(
            getattr(part, name, value) == value for name, value in self.options.items()
        )

    def describe(self) -> str:
        """Return the owner and the options."""
        options = [f'{name}={value}' for name, value in self.options.items()]
        return ', '.join([self.owner, *options])


def check_suppression(test_cfg: dict) -> None:
    """Refuse, by a ValueError, suppression of boxes by other means than their IoU."""
    for cfg in (test_cfg, test_cfg.get('rpn') or {}, test_cfg.get('rcnn') or {}):
        options = dict(cfg.get('nms') or {})
        if options.pop('type', 'nms') != 'nms' or set(options) - {'iou_threshold'}:
            text = f'test_cfg must have nms by iou_threshold, got {cfg["nms"]}'
            raise ValueError(text)


# models by the class that must define `predict`
_MODELS = (
    'SingleStageDetector',
    'TwoStageDetector',
    'EncoderDecoder',
    'ImageClassifier',
)
_DENSE = ('_predict_by_feat_single', '_bbox_post_process')
_CODER = _Part(
    'DeltaXYWHBBoxCoder', ('decode',), dict(clip_border=True, add_ctr_clamp=False)
)
_EXTRACTOR = _Part('SingleRoIExtractor', ('forward',))
# by names, private ones too: the libraries need not be installed, and a version that
# renames a step, and so may change it, is refused
_KNOWN = {
    'decode_head': _Part('BaseDecodeHead', ('predict', 'predict_by_feat')),
    'head': _Part('ClsHead', ('predict',)),
    'bbox_head': _Part('BaseDenseHead', _DENSE),
    'bbox_head.bbox_coder': _CODER,
    'rpn_head': _Part('RPNHead', _DENSE),
    'rpn_head.bbox_coder': _CODER,
    'roi_head': _Part(
        'StandardRoIHead',
        ('predict_bbox', 'predict_mask', '_bbox_forward', '_mask_forward'),
        dict(with_shared_head=False),
    ),
    'roi_head.bbox_roi_extractor': _EXTRACTOR,
    'roi_head.bbox_head': _Part(
        'BBoxHead',
        ('_predict_by_feat_single',),
        dict(custom_cls_channels=False, with_reg=True),
    ),
    'roi_head.bbox_head.bbox_coder': _CODER,
    'roi_head.mask_roi_extractor': _EXTRACTOR,
    'roi_head.mask_head': _Part('FCNMaskHead', ('_predict_by_feat_single',)),
}

# a classifier's head that gives each class a probability of its own
_MULTI_LABEL = _Part('MultiLabelClsHead', ('predict', '_get_predictions'))


class WholeModel(ExportedModel):
    """An image of 8-bit integers to predictions in its own pixels.

    Supported are detectors with anchors and deltas (RetinaNet, ATSS), two-stage
    detectors (Faster R-CNN, Mask R-CNN), segmentors with one decoder head of maps
    (UperNet; whole images or sliding windows), and classifiers. Outputs:

    - detectors: ``boxes`` (N, 4) as x1, y1, x2, y2, ``scores`` (N,), ``labels`` (N,),
      best first, and from a mask head ``masks`` (N, h, w), the probabilities of the
      object in h x w cells of its box,
    - segmentors: ``label_map`` (H, W), int32,
    - classifiers: ``scores`` (K,), of several labels a probability for each class.

    Args:
        model (nn.Module): A detector, segmentor or classifier. It is copied.
        pipeline (Sequence[dict]): The config's test pipeline.
        preprocessor (dict): The config's data preprocessor.

    Raises:
        ValueError: If the model or the pipeline has a part of another kind.
    """

    input_name = 'image'

    def __init__(
        self, model: nn.Module, pipeline: Sequence[dict], preprocessor: dict
    ) -> None:
        super().__init__(model)
        self.prepare = Preparation(pipeline, preprocessor)

    def check(self, model: Any) -> None:
        method = getattr(getattr(model, 'predict', None), '__qualname__', '')
        if method.rpartition('.')[0] not in _MODELS:
            raise ValueError(
                f'{type(model).__name__} can not be exported whole: it must predict '
                f'like {", ".join(_MODELS)}'
            )
        for path, known in _KNOWN.items():
            try:
                part = attrgetter(path)(model)
            except AttributeError:
                continue
            is_multi_label = path == 'head' and _MULTI_LABEL.predicts_like(part)
            if (
                part is not None
                and not is_multi_label
                and not known.predicts_like(part)
            ):
                raise ValueError(
                    f'{path}={type(part).__name__} can not be exported whole: it must '
                    f'predict like {known.describe()}'
                )
        check_suppression(getattr(model, 'test_cfg', None) or {})

    def example(self, shape: tuple[int, int], batch: int) -> Tensor:
        return torch.zeros(*shape, 3, dtype=torch.uint8)

    def axes(self, example: Tensor) -> dict[str, dict[int, str]]:
        model: Any = self.model
        sides = {0: 'height', 1: 'width'}
        axes: dict[str, dict[int, str]] = {self.input_name: sides}
        if hasattr(model, 'decode_head'):
            axes['label_map'] = sides
        elif hasattr(model, 'head'):
            axes['scores'] = {}
        else:
            has_masks = hasattr(model, 'roi_head') and model.roi_head.with_mask
            for name in Boxes._fields[: 3 + has_masks]:
                axes[name] = {0: 'boxes'}
        return axes

    def named_outputs(self, image: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Yield names and values of the outputs for an image (H, W, 3), RGB, uint8."""
        model: Any = self.model
        photo = self.prepare(image)
        if hasattr(model, 'decode_head'):
            yield 'label_map', segment(model, photo)
            return
        maps = features(model, photo)
        if hasattr(model, 'head'):
            logits = model.head(maps)[0]
            is_multi_label = _MULTI_LABEL.predicts_like(model.head)
            yield 'scores', logits.sigmoid() if is_multi_label else logits.softmax(-1)
            return
        if hasattr(model, 'roi_head'):
            boxes = two_stages(model, maps, photo)
        else:
            head = model.bbox_head
            boxes = dense(head, head(maps), photo.bounds, model.test_cfg, photo.factors)
        for name, value in boxes._asdict().items():
            if value is not None:
                yield name, value


class Boxes(NamedTuple):
    """Detections, best first; the outputs of a file have these names."""

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    masks: Optional[Tensor] = None


def dense(
    head: Any, maps: Any, bounds: Tensor, cfg: Any, factors: Optional[Tensor] = None
) -> Boxes:
    """Return boxes of a head with anchors and deltas.

    Its outputs have for each level logits (1, A * K, H, W), deltas (1, A * 4, H, W)
    and, from some heads, logits of quality (1, A, H, W). ``bounds`` are the largest x,
    y, x, y. Without ``factors`` of the boxes, both (4,), the head proposes regions: low
    scores are kept, and labels are levels.
    """
    sizes = [scores.shape[-2:] for scores in maps[0]]
    anchors = head.prior_generator.grid_priors(sizes, device='cpu')
    channels = head.cls_out_channels
    levels = []
    for level, (priors, logits, deltas, *quality) in enumerate(zip(anchors, *maps)):
        scores = _rows(logits, channels)
        if head.use_sigmoid_cls:
            # ONNX Runtime's Sigmoid is off by 1e-8, and regions below that are ranked
            scores = 1 / (1 + (-scores).exp())
        else:
            scores = scores.softmax(-1)[:, :-1]
        scores = scores.flatten()
        least = -1.0 if factors is None else cfg.get('score_thr', 0)
        above = _places(scores > least)
        most: Any = torch.tensor(cfg.get('nms_pre', 2**31))
        most = torch.minimum(_length(above), most)
        scores, best = scores[above].topk(most)
        place, label = _split(above[best], head.num_classes)
        for logits in quality:
            scores = scores * _rows(logits, 1)[place, 0].sigmoid()
        deltas = _rows(deltas, 4)[place]
        boxes = decode(head.bbox_coder, priors[place], deltas, bounds)
        # regions of different levels do not suppress each other
        levels.append((boxes, scores, 0 * label + level if factors is None else label))
    boxes, scores, labels = map(torch.cat, zip(*levels))
    if factors is not None:
        boxes = boxes * factors
    if cfg.get('min_bbox_size', -1) >= 0:
        sides = boxes[:, 2:] - boxes[:, :2]
        above = _places(sides.min(1)[0] > cfg.min_bbox_size)
        boxes, scores, labels = boxes[above], scores[above], labels[above]
    return suppress(boxes, scores, labels, cfg)


def two_stages(model: Any, maps: Sequence[Tensor], photo: Photo) -> Boxes:
    """Return boxes of Faster R-CNN, and masks of Mask R-CNN."""
    rpn, roi, cfg = model.rpn_head, model.roi_head, model.test_cfg
    proposed = dense(rpn, rpn(maps), photo.bounds, cfg.rpn).boxes
    head = roi.bbox_head
    logits, deltas = head(extract(roi.bbox_roi_extractor, maps, proposed))
    scores = logits.softmax(-1)[:, :-1].flatten()
    above = _places(scores > cfg.rcnn.score_thr)
    place, labels = _split(above, head.num_classes)
    deltas = deltas.reshape(-1, 4)[place if head.reg_class_agnostic else above]
    boxes = decode(head.bbox_coder, proposed[place], deltas, photo.bounds)
    if not roi.with_mask:
        return suppress(boxes * photo.factors, scores[above], labels, cfg.rcnn)
    # with masks, mmdet compares boxes before it resizes them
    detected = suppress(boxes, scores[above], labels, cfg.rcnn)
    masks = roi.mask_head(extract(roi.mask_roi_extractor, maps, detected.boxes))
    channel = 0 * detected.labels if roi.mask_head.class_agnostic else detected.labels
    masks = masks[steps(_length(channel)), channel].sigmoid()
    return detected._replace(boxes=detected.boxes * photo.factors, masks=masks)


def decode(coder: Any, priors: Tensor, deltas: Tensor, bounds: Tensor) -> Tensor:
    """Return boxes (N, 4) from anchors and deltas (N, 4), like mmdet's
    DeltaXYWHBBoxCoder."""
    deltas = deltas * deltas.new_tensor(coder.stds) + deltas.new_tensor(coder.means)
    sides = priors[:, 2:] - priors[:, :2]
    centers = (priors[:, :2] + priors[:, 2:]) * 0.5 + sides * deltas[:, :2]
    most = -math.log(16 / 1000)
    sides = sides * deltas[:, 2:].clamp(-most, most).exp()
    boxes = torch.cat([centers - sides * 0.5, centers + sides * 0.5], -1)
    return torch.minimum(boxes.clamp(min=0), bounds)


def suppress(boxes: Tensor, scores: Tensor, labels: Tensor, cfg: Any) -> Boxes:
    """Return the best boxes (N, 4), without those that a better one of their label
    covers.

    Boxes of different labels are moved apart, so that one call of ONNX's operator
    serves all labels.
    """
    largest = torch.cat([boxes.flatten(), boxes.new_zeros(1)]).max()
    apart = boxes + (labels * (largest + 1))[:, None]
    left = nms(apart, scores, cfg.nms.iou_threshold)[: cfg.max_per_img]
    return Boxes(boxes[left], scores[left], labels[left])


def extract(extractor: Any, maps: Sequence[Tensor], boxes: Tensor) -> Tensor:
    """Crop (N, C, h, w) of boxes (N, 4), each from the level that fits its size."""
    rois = torch.cat([0 * boxes[:, :1], boxes], 1)  # all of image 0
    layers = extractor.roi_layers
    levels = extractor.map_roi_levels(rois, len(layers))
    crops, order = [], []
    for level, (layer, features) in enumerate(zip(layers, maps)):
        order.append(_places(levels == level))
        arguments = (layer.output_size, layer.spatial_scale, layer.sampling_ratio)
        crops.append(roi_align(features, rois[order[-1]], *arguments, layer.aligned))
    return torch.cat(crops)[torch.cat(order).sort()[1]]


def segment(model: Any, photo: Photo) -> Tensor:
    """Return the label map (H, W) of a segmentor, like mmseg's whole and slide
    inference."""
    if model.test_cfg.mode == 'slide':
        logits = slide(model, photo.pixels)
    else:
        logits = _decode(model, features(model, photo), photo.pixels)
    height, width = photo.size.unbind()
    logits = _resize(model, logits[:, :, :height, :width], photo.original)[0]
    if model.out_channels == 1:
        return (logits[0].sigmoid() > model.decode_head.threshold).int()
    return logits.argmax(0).int()


def logits_of(model: Any, pixels: Tensor) -> Tensor:
    """Return logits (B, K, H, W) of images (B, C, H, W)."""
    return _decode(model, model.extract_feat(pixels), pixels)


def features(model: Any, photo: Photo) -> Sequence[Tensor]:
    """Return the maps that the heads read.

    A trace does not read pixels, so a backbone of ours with ``mask_padding`` gets the
    photo before padding, and its maps are padded after it.
    """
    backbone = model.backbone
    masks = getattr(backbone, 'mask_padding', False)
    if not masks or backbone.out_type != 'featmap':
        return model.extract_feat(photo.pixels)
    height, width = photo.size.clamp(min=backbone.min_side).unbind()
    canvas = torch._shape_as_tensor(photo.pixels)[2:]
    maps = []
    outs = backbone(photo.pixels[:, :, :height, :width])
    for out, stride in zip(outs, backbone.feature_strides):
        whole = torch.div(canvas + stride - 1, stride, rounding_mode='trunc')
        below: Any
        right: Any
        below, right = (whole - torch._shape_as_tensor(out)[2:]).unbind()
        maps.append(nnf.pad(out, (0, right, 0, below)))
    return model.neck(tuple(maps)) if model.with_neck else maps


def _decode(model: Any, maps: Sequence[Tensor], pixels: Tensor) -> Tensor:
    """Return logits (B, K, H, W) of the images (B, C, H, W) of these maps."""
    return _resize(model, model.decode_head(maps), torch._shape_as_tensor(pixels)[2:])


def slide(model: Any, pixels: Tensor) -> Tensor:
    """Return the mean of logits (1, K, H, W) over windows, which run as one batch."""
    sides, windows = torch._shape_as_tensor(pixels)[2:], pixels[0]
    shape: list[Any] = []
    sums = []
    for axis, side in enumerate(sides.unbind()):
        stride = model.test_cfg.stride[axis]
        crop = torch.minimum(side, torch.tensor(model.test_cfg.crop_size[axis]))
        count = torch.div(side - crop + stride - 1, stride, rounding_mode='trunc') + 1
        starts = torch.minimum(steps(count) * stride, side - crop)
        places = (starts[:, None] + steps(crop)).flatten()
        windows = windows.index_select(axis + 1, places)
        sums.append((steps(side)[:, None] == places).float())
        shape += [count, crop]
    rows, height, columns, width = shape
    windows = windows.reshape(-1, rows, height, columns, width)
    windows = windows.permute(1, 3, 0, 2, 4).flatten(0, 1)
    logits = logits_of(model, windows)
    logits = logits.reshape(rows, columns, -1, height, width).permute(2, 0, 3, 1, 4)
    logits = logits.reshape(-1, rows * height, columns * width)
    # products with zeros and ones add windows up where they overlap
    down, across = sums
    counts = down.sum(1)[:, None] * across.sum(1)
    return (down @ logits @ across.t() / counts)[None]


def _resize(model: Any, logits: Tensor, size: Tensor) -> Tensor:
    height, width = size.unbind()
    return nnf.interpolate(
        logits, size=(height, width), mode='bilinear', align_corners=model.align_corners
    )


def _rows(maps: Tensor, channels: int) -> Tensor:
    """Return maps (1, A * C, H, W) as rows (H * W * A, C), one for each anchor."""
    return maps[0].permute(1, 2, 0).reshape(-1, channels)


def _places(is_true: Tensor) -> Tensor:
    """Return indices where a vector is true; TensorRT's operator takes float32 only."""
    return is_true.float().nonzero()[:, 0]


def _split(index: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Return rows and columns of indices into a flattened matrix (-1, K)."""
    row = torch.div(index, num_classes, rounding_mode='trunc')
    return row, index - row * num_classes


def _length(x: Tensor) -> Tensor:
    return torch._shape_as_tensor(x)[0]
