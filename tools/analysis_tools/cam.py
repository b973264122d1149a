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

import sys
from pathlib import Path
from textwrap import shorten

import torch
from mmengine.utils import track_iter_progress
from torch import nn

from mmlinattn.analysis import blocks_of, watch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, number
from mmlinattn_tools.figures import new_figure
from mmlinattn_tools.looking import add_arguments, load_subjects, run

METHODS = {'grad-cam': 'GradCAM', 'score-cam': 'ScoreCAM'}
PANEL = 3.2  # inches


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add_arguments(parser, 'cam')
    parser.add_argument(
        '--method',
        nargs='+',
        choices=METHODS,
        default=['grad-cam'],
        help='what to draw (default: grad-cam)',
    )
    parser.add_argument(
        '--category',
        type=number(int, 0, 10**6),
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
        type=number(int, 1, 10**4),
        default=8,
        metavar='N',
        help='images in a forward pass of Score-CAM (default: %(default)s)',
    )
    return parser.parse_args(argv)


class Scores(nn.Module):
    """A model as a function of its inputs, (B, 3, H, W) to scores of classes (B, K)."""

    def __init__(self, model, forward):
        super().__init__()
        self.model = model
        self.forward = forward


def segmentor_scores(model, picture):
    """Mean logits over the pixels of each class in the unchanged image, and how many
    there are."""

    def logits(x):
        return model.decode_head(model.extract_feat(x))

    labels = logits(picture.inputs).argmax(1)  # (1, h, w)
    masks = nn.functional.one_hot(labels, model.decode_head.out_channels)
    masks = masks.permute(0, 3, 1, 2)
    counts = masks.sum((0, 2, 3))
    masks[:, counts == 0] = 1
    weights = masks / masks.sum((2, 3), keepdim=True)
    return lambda x: (logits(x) * weights).sum((2, 3)), counts


def one_stage_scores(model):
    """Highest logits over all anchors of a one-stage detector."""
    num_classes = model.bbox_head.cls_out_channels

    def scores(x):
        levels = model.bbox_head(model.extract_feat(x))[0]
        by_anchor = (x.unflatten(1, (-1, num_classes)) for x in levels)
        return torch.stack([x.amax((1, 3, 4)) for x in by_anchor]).amax(0)

    return scores


def two_stage_scores(model, picture):
    """Highest logits over the proposals for the unchanged image."""
    maps = model.extract_feat(picture.inputs)
    (found,) = model.rpn_head.predict(maps, picture.data_samples, rescale=False)
    boxes, head = found.bboxes, model.roi_head
    # of a cascade, the last stage
    stage = [head.num_stages - 1] if isinstance(head.bbox_head, nn.ModuleList) else []

    def scores(x):
        images = torch.arange(len(x), device=x.device).repeat_interleave(len(boxes))
        rois = torch.cat((images[:, None], boxes.repeat(len(x), 1)), 1)
        logits = head._bbox_forward(*stage, model.extract_feat(x), rois)['cls_score']
        # without the background
        return logits.unflatten(0, (len(x), len(boxes)))[..., :-1].amax(1)

    return scores


@torch.no_grad()
def class_scores(subject, picture):
    """What gives scores of classes, and for the unchanged image what says which class
    is found, (K,)."""
    model = subject.model
    if hasattr(model, 'decode_head'):
        scores, found = segmentor_scores(model, picture)
        return Scores(model, scores), found
    if hasattr(model, 'rpn_head') and hasattr(model, 'roi_head'):
        scores = two_stage_scores(model, picture)
    elif hasattr(getattr(model, 'bbox_head', None), 'prior_generator'):
        scores = one_stage_scores(model)
    elif getattr(model, 'head', None) is not None:
        scores = model.forward  # of a classifier, logits
    else:
        raise ValueError(
            f'{subject.config}: {type(model).__name__} is neither a classifier, a '
            'segmentor nor a detector with anchors or proposals'
        )
    return Scores(model, scores), scores(picture.inputs)[0]


def target_layer(subject, picture, name):
    """Name of the layer, by default norm1 of the last block; and a function from its
    output to (B, C, H, W), in which tokens have the (H, W) of the layer's block."""
    blocks = list(blocks_of(subject.model))
    if not name and not blocks:
        raise ValueError(
            f'{subject.config}: the model has no block of mmlinattn: name a --layer'
        )
    name = name or f'{blocks[-1]}.norm1'
    if name not in dict(subject.model.named_modules()):
        near = f'; the last block is {blocks[-1]}' if blocks else ''
        raise KeyError(f'--layer {name}: {subject.config} has no such module{near}')
    shapes = []

    def look(block):
        if f'{name}.'.startswith(f'{block.name}.'):
            shapes.append(block.hw_shape)

    if blocks:
        with torch.no_grad(), watch(subject.model, on_block=look):
            subject.model.extract_feat(picture.inputs)

    def to_maps(x):
        x = x[-1] if isinstance(x, (tuple, list)) else x
        if x.dim() == 4:
            return x
        height, width = shapes[0] if shapes else (0, 0)
        if x.dim() != 3 or not 0 < height * width <= x.size(1):
            raise ValueError(
                f'--layer {name}: its output {tuple(x.shape)} is no map: name a block '
                'or a norm of one'
            )
        tokens = x[:, x.size(1) - height * width :]
        return tokens.transpose(1, 2).unflatten(-1, (height, width))

    return name, to_maps


def activation_maps(package, args, subject, path):
    """The picture, and what is drawn of it: the class, the layer, and a map (H, W) for
    each method."""
    picture = subject.read(path)
    name, to_maps = target_layer(subject, picture, args.layer)
    scores, found = class_scores(subject, picture)
    category = found.argmax().item() if args.category is None else args.category
    if category >= len(found):
        raise ValueError(
            f'--category {category}: {subject.config} has classes 0 to {len(found) - 1}'
        )
    target = package.utils.model_targets.ClassifierOutputTarget(category)
    height, width = picture.pixels.shape[:2]
    maps = {}
    for method in args.method:
        kind = getattr(package, METHODS[method])
        layers = [subject.model.get_submodule(name)]
        with kind(scores, layers, reshape_transform=to_maps) as cam:
            cam.batch_size = args.batch_size
            maps[method] = cam(picture.inputs, [target])[0, :height, :width]
    title = subject.class_name(category)
    return picture, dict(category=category, class_name=title, layer=name, maps=maps)


def draw_cams(labels, found):
    """A line for each model: the picture, and the maps on it."""
    columns = 1 + len(found[0][1]['maps'])
    height, width = found[0][0].pixels.shape[:2]
    figure = new_figure(
        PANEL * columns + 0.6, (PANEL * height / width + 0.65) * len(found)
    )
    grid = figure.subplots(len(found), columns, squeeze=False)
    for line, label, (picture, drawn) in zip(grid, labels, found):
        line[0].imshow(picture.pixels)
        line[0].set_title(label, fontsize=9)
        for axes, (method, weights) in zip(line[1:], drawn['maps'].items()):
            axes.imshow(picture.pixels.mean(-1), cmap='gray')
            image = axes.imshow(weights, cmap='viridis', alpha=0.6, vmin=0, vmax=1)
            title = shorten(drawn['class_name'], 36, placeholder='...')
            axes.set_title(f'{method}\n{title}', fontsize=9)
    for axes in grid.flat:
        axes.axis('off')
    bar = figure.colorbar(image, ax=grid, shrink=0.6, pad=0.02)
    bar.set_label('activation, least 0 to most 1', fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return figure


def draw(args):
    try:
        import pytorch_grad_cam
    except ImportError:
        raise ImportError(
            'cam.py needs the package grad-cam: pip install grad-cam==1.5.4'
        ) from None
    subjects, files = load_subjects(args, whole=True)
    labels = [subject.label for subject in subjects]
    for path in track_iter_progress(files):
        found = [
            activation_maps(pytorch_grad_cam, args, subject, path)
            for subject in subjects
        ]
        models = [
            dict(subject.describe(), **drawn)
            for subject, (_, drawn) in zip(subjects, found)
        ]
        numbers = dict(image=path.name, models=models)
        yield f'{path.stem}_cam', draw_cams(labels, found), numbers


def main(argv=None):
    run(parse_args(argv), draw)


if __name__ == '__main__':
    main()
