"""Draw class activation maps: which parts of an image speak for a class.

Grad-CAM weights the channels of a layer by the gradients of the class's score,
Score-CAM by the score of the image seen through each of them, which takes a forward
pass for every channel. The score of a class is
- of a classifier, its logit;
- of a segmentor, its mean logit over the pixels that are predicted to be of the class,
  or over all if there are none;
- of a detector, its highest logit: over all anchors of a one-stage detector, or over
  the proposals of its RPN for the unchanged image in a two-stage one.
By default it is the class that the model finds: the one of the highest score, or of
most pixels.

Works through the package grad-cam: pip install grad-cam==1.5.4

Written to --out: IMAGE_cam.png, and IMAGE_cam.json with the maps drawn, 0 to 1.

example:
  python tools/analysis_tools/cam.py configs/elfatt/swin-t-elfatt_in1k.py \\
      configs/elfatt/cswin-t-elfatt_in1k.py --checkpoint swin.pth cswin.pth \\
      --image cat.jpg --method grad-cam score-cam
"""

import argparse
import sys
from pathlib import Path
from textwrap import shorten

import torch
from mmengine.utils import ProgressBar
from torch import nn

from mmlinattn.analysis import blocks_of, watch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser
from mmlinattn_tools.visualization import (
    add_arguments,
    class_name,
    dataset_meta,
    input_errors,
    load_subjects,
    new_figure,
    save,
    save_numbers,
)

METHODS = {'grad-cam': 'GradCAM', 'score-cam': 'ScoreCAM'}
PANEL = 3.2  # inches


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add_arguments(parser, 'cam', '{}_cam')
    parser.add_argument(
        '--method',
        nargs='+',
        choices=METHODS,
        default=['grad-cam'],
        help='what to draw (default: grad-cam)',
    )
    parser.add_argument(
        '--category',
        type=number,
        metavar='K',
        help='number of the class, from 0 (default: the one that the model finds)',
    )
    parser.add_argument(
        '--layer',
        metavar='NAME',
        help='module whose output is weighted, such as backbone.stages.3.blocks.1 '
        '(default: norm1 of the last block)',
    )
    parser.add_argument(
        '--batch-size',
        type=number,
        default=8,
        metavar='N',
        help='images in a forward pass of Score-CAM (default: %(default)s)',
    )
    return parser.parse_args(argv)


def number(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'{text!r} is not a number, 0 or more')
    return int(text)


def import_grad_cam():
    """The package grad-cam.

    Raises:
        ImportError: If it is missing.
    """
    try:
        import pytorch_grad_cam
    except ImportError:
        raise ImportError(
            'cam.py needs the package grad-cam: pip install grad-cam==1.5.4'
        ) from None
    return pytorch_grad_cam


class ClassScores(nn.Module):
    """Scores (B, K) of a model's classes, for what an unchanged image shows.

    Args:
        model (nn.Module): A classifier.
        picture (Picture): The unchanged image.
    """

    def __init__(self, model, picture):
        super().__init__()
        self.model = model
        self.picture = picture

    def forward(self, x):
        return self.model(x, mode='tensor')

    @torch.no_grad()
    def found(self):
        """The class that the model finds in the unchanged image."""
        return self(self.picture.inputs)[0].argmax().item()


class SegmentorScores(ClassScores):
    """Mean logits over the pixels of each class."""

    def __init__(self, model, picture):
        super().__init__(model, picture)
        with torch.no_grad():
            labels = self.logits(picture.inputs).argmax(1)  # (1, h, w)
        num_classes = model.decode_head.out_channels
        masks = nn.functional.one_hot(labels, num_classes).permute(0, 3, 1, 2)
        self.counts = masks.sum((0, 2, 3))
        masks[:, self.counts == 0] = 1
        self.weights = masks / masks.sum((2, 3), keepdim=True)

    def logits(self, x):
        return self.model.decode_head(self.model.extract_feat(x))

    def forward(self, x):
        return (self.logits(x) * self.weights).sum((2, 3))

    def found(self):
        return self.counts.argmax().item()


class OneStageScores(ClassScores):
    """Highest logits over all anchors of a one-stage detector."""

    def forward(self, x):
        maps = self.model.bbox_head(self.model.extract_feat(x))[0]
        num_classes = self.model.bbox_head.cls_out_channels
        logits = [
            x.unflatten(1, (-1, num_classes)).amax((1, 3, 4)) for x in maps
        ]  # (B, K) for each level
        return torch.stack(logits).amax(0)


class TwoStageScores(ClassScores):
    """Highest logits over the proposals for the unchanged image."""

    def __init__(self, model, picture):
        super().__init__(model, picture)
        with torch.no_grad():
            maps = model.extract_feat(picture.inputs)
            (found,) = model.rpn_head.predict(maps, picture.data_samples, rescale=False)
        self.boxes = found.bboxes

    def forward(self, x):
        maps, num = self.model.extract_feat(x), len(self.boxes)
        images = torch.arange(len(x), device=x.device).repeat_interleave(num)
        rois = torch.cat((images[:, None], self.boxes.repeat(len(x), 1)), 1)
        head = self.model.roi_head
        if isinstance(head.bbox_head, nn.ModuleList):  # of a cascade, the last
            found = head._bbox_forward(head.num_stages - 1, maps, rois)
        else:
            found = head._bbox_forward(maps, rois)
        logits = found['cls_score'].unflatten(0, (len(x), num))
        return logits[..., :-1].amax(1)  # without the background


def score_classes(subject, picture):
    """What gives scores of classes for a model.

    Raises:
        ValueError: If its kind is unknown.
    """
    model = subject.model
    if hasattr(model, 'decode_head'):
        return SegmentorScores(model, picture)
    if hasattr(model, 'rpn_head') and hasattr(model, 'roi_head'):
        return TwoStageScores(model, picture)
    if hasattr(getattr(model, 'bbox_head', None), 'prior_generator'):
        return OneStageScores(model, picture)
    if getattr(model, 'head', None) is not None:
        return ClassScores(model, picture)
    raise ValueError(
        f'{subject.config}: {type(model).__name__} is neither a classifier, a '
        'segmentor nor a detector with anchors or proposals'
    )


def target_layer(subject, name):
    """Name and module of the layer.

    Raises:
        KeyError: If the model has no such layer.
        ValueError: If it has no block of mmlinattn, and no layer is named.
    """
    blocks = list(blocks_of(subject.model))
    if name is None:
        if not blocks:
            raise ValueError(
                f'{subject.config}: the model has no block of mmlinattn: name a --layer'
            )
        name = f'{blocks[-1]}.norm1'
    modules = dict(subject.model.named_modules())
    if not name or name not in modules:
        near = f'; the last block is {blocks[-1]}' if blocks else ''
        raise KeyError(f'--layer {name}: {subject.config} has no such module{near}')
    return name, modules[name]


def map_shape(subject, picture, name):
    """(H, W) of the block that a layer is in, or None."""
    shapes = {}

    def look(block):
        shapes[block.name] = block.hw_shape

    if blocks_of(subject.model):
        with torch.no_grad(), watch(subject.model, on_block=look):
            subject.model.extract_feat(picture.inputs)
    inside = [block for block in shapes if f'{name}.'.startswith(f'{block}.')]
    return shapes[inside[0]] if inside else None


def to_maps(shape, name):
    """A function from a layer's output to (B, C, H, W)."""

    def transform(x):
        if isinstance(x, (tuple, list)):
            x = x[-1]
        if x.dim() == 4:
            return x
        if x.dim() != 3 or shape is None or x.size(1) < shape[0] * shape[1]:
            raise ValueError(
                f'--layer {name}: its output {tuple(x.shape)} is no map: name a block '
                'or a norm of one'
            )
        tokens = x[:, x.size(1) - shape[0] * shape[1] :]
        return tokens.transpose(1, 2).unflatten(-1, shape)

    return transform


def activation_maps(subject, path, args):
    """The picture, the class and the layer, and a map (H, W) for each method."""
    package = import_grad_cam()
    picture = subject.read(path)
    name, layer = target_layer(subject, args.layer)
    scores = score_classes(subject, picture).eval()
    with torch.no_grad():
        num_classes = scores(picture.inputs).size(1)
    category = scores.found() if args.category is None else args.category
    if category >= num_classes:
        raise ValueError(
            f'--category {category}: {subject.config} has classes 0 to '
            f'{num_classes - 1}'
        )
    target = package.utils.model_targets.ClassifierOutputTarget(category)
    transform = to_maps(map_shape(subject, picture, name), name)
    maps = {}
    for method in args.method:
        kind = getattr(package, METHODS[method])
        with kind(scores, [layer], reshape_transform=transform) as cam:
            cam.batch_size = args.batch_size
            maps[method] = cam(picture.inputs, [target])[0]
    found = class_name(dataset_meta(subject), category)
    return picture, dict(category=category, class_name=found, layer=name), maps


def draw(rows):
    columns = 1 + len(rows[0][3])
    height, width = rows[0][1].pixels.shape[:2]
    figure = new_figure(
        PANEL * columns + 0.6, (PANEL * height / width + 0.65) * len(rows)
    )
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for line, (label, picture, name, maps) in zip(grid, rows):
        line[0].imshow(picture.pixels)
        line[0].set_title(label, fontsize=9)
        for axes, (method, weights) in zip(line[1:], maps.items()):
            axes.imshow(picture.pixels.mean(-1), cmap='gray')
            image = axes.imshow(weights, cmap='viridis', alpha=0.6, vmin=0, vmax=1)
            title = shorten(name, 36, placeholder='...')
            axes.set_title(f'{method}\n{title}', fontsize=9)
    for axes in grid.flat:
        axes.axis('off')
    bar = figure.colorbar(image, ax=grid, shrink=0.6, pad=0.02)
    bar.set_label('activation, least 0 to most 1', fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return figure


def run(args):
    import_grad_cam()
    subjects, files = load_subjects(args, whole=True)
    bar, results = ProgressBar(len(files) * len(subjects)), []
    for path in files:
        rows, models = [], []
        for subject in subjects:
            picture, about, maps = activation_maps(subject, path, args)
            rows.append((subject.label, picture, about['class_name'], maps))
            numbers = {method: weights.tolist() for method, weights in maps.items()}
            models.append(dict(subject.describe(), **about, maps=numbers))
            bar.update()
        results.append((path, draw(rows), models))
    print()
    for path, figure, models in results:
        out = args.out / f'{path.stem}_cam.png'
        for written in save(figure, out, args.svg):
            print(written)
        numbers = dict(image=path.name, models=models)
        print(save_numbers(numbers, out.with_suffix('.json')))


def main(argv=None):
    args = parse_args(argv)
    with input_errors():
        run(args)


if __name__ == '__main__':
    main()
