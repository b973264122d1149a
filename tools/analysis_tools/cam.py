"""Draw class activation maps: the parts of an image that support a class.

Grad-CAM weights the channels of a layer by the gradients of the class's score,
Score-CAM by the score of the image seen through each of them, which takes a forward
pass for every channel. The layer is norm1 of the last block. The score of a class is
- in a classifier, its logit;
- in a segmentor, its mean logit over the pixels that are predicted to be of the class,
  or over all if there are none;
- in a detector, its highest logit: over all anchors of a one-stage detector, or over
  the proposals of its RPN for the unchanged image in a two-stage one.
  The default class is the predicted one: the one of the highest score, or of most
  pixels.

It needs the package grad-cam: pip install grad-cam==1.5.4

It writes IMAGE_cam.png, and IMAGE_cam.json with the maps, 0 to 1, to --out.
"""

import sys
from pathlib import Path
from textwrap import shorten

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import number

# isort: split
import torch
from mmengine.utils import track_iter_progress
from torch import nn

from mmlinattn.analysis import watch
from mmlinattn_tools.figures import picture_grid
from mmlinattn_tools.looking import looking_parser, output_stem, run

METHODS = {'grad-cam': 'Grad-CAM', 'score-cam': 'Score-CAM'}
BATCH_SIZE = 8  # images in a forward pass of Score-CAM


class Scores(nn.Module):
    """A model as a function of its inputs, (B, 3, H, W) to scores of classes (B, K)."""

    def __init__(self, model, forward):
        super().__init__()
        self.model = model
        self.forward = forward


def segmentor_scores(model, picture):
    """Mean logits over the pixels of each class in the unchanged image, and the number
    of these pixels."""

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
    # the last stage of a cascade
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
    """The function to scores of classes, and the values (K,) whose largest one is the
    class found in the unchanged image."""
    model = subject.model
    if hasattr(model, 'decode_head'):
        scores, found = segmentor_scores(model, picture)
        return Scores(model, scores), found
    if hasattr(model, 'rpn_head') and hasattr(model, 'roi_head'):
        scores = two_stage_scores(model, picture)
    elif hasattr(getattr(model, 'bbox_head', None), 'prior_generator'):
        scores = one_stage_scores(model)
    elif getattr(model, 'head', None) is not None:
        scores = model.forward  # logits of a classifier
    else:
        raise ValueError(
            f'{subject.config}: {type(model).__name__} is neither a classifier, a '
            'segmentor nor a detector with anchors or proposals'
        )
    return Scores(model, scores), scores(picture.inputs)[0]


def activation_maps(package, args, subject, picture):
    """The class, its name, the layer, and a map (H, W) for each method."""
    shapes = {}
    with watch(subject.model, on_block=lambda x: shapes.update({x.name: x.hw_shape})):
        scores, found = class_scores(subject, picture)
    block, (height, width) = list(shapes.items())[-1]
    category = found.argmax().item() if args.category is None else args.category
    if category >= len(found):
        raise ValueError(
            f'--category {category}: {subject.config} has classes 0 to {len(found) - 1}'
        )
    target = package.utils.model_targets.ClassifierOutputTarget(category)

    def to_maps(tokens):  # the map's tokens come last
        return tokens[:, -height * width :].mT.unflatten(-1, (height, width))

    layer = f'{block}.norm1'
    maps = {}
    for method in args.method:
        kind = getattr(package, METHODS[method].replace('-', ''))
        layers = [subject.model.get_submodule(layer)]
        with kind(scores, layers, reshape_transform=to_maps) as cam:
            cam.batch_size = BATCH_SIZE
            whole = cam(picture.inputs, [target])[0]
        maps[method] = whole[: len(picture.pixels), : picture.pixels.shape[1]]
    name = subject.class_name(category)
    return dict(category=category, class_name=name, layer=layer, maps=maps)


def draw_cams(pictures, models):
    """A line for each model: the picture, and the maps on it."""
    columns = 1 + len(models[0]['maps'])
    shape = pictures[0].pixels.shape
    figure, grid = picture_grid(len(models), columns, shape, 3.2)
    figure.set_figwidth(3.2 * columns + 0.9)  # 0.9 for the scale
    for line, picture, model in zip(grid, pictures, models):
        line[0].imshow(picture.pixels)
        line[0].set_title(model['label'])
        title = shorten(model['class_name'], 36, placeholder='...')
        for axes, (method, weights) in zip(line[1:], model['maps'].items()):
            axes.imshow(picture.pixels.mean(-1), cmap='gray')
            image = axes.imshow(weights, cmap='viridis', alpha=0.6, vmin=0, vmax=1)
            axes.set_title(f'{METHODS[method]}\n{title}')
    scale = figure.colorbar(image, ax=grid, shrink=0.6, pad=0.02)
    scale.set_label('activation, least 0 to most 1')
    return figure


def draw(args, subjects, files):
    try:
        import pytorch_grad_cam
    except ImportError:
        raise ImportError(
            'cam.py needs the package grad-cam: pip install grad-cam==1.5.4'
        ) from None
    for path in track_iter_progress(files):
        pictures = [subject.read(path) for subject in subjects]
        models = [
            x.describe(**activation_maps(pytorch_grad_cam, args, x, picture))
            for x, picture in zip(subjects, pictures)
        ]
        numbers = dict(image=path.name, models=models)
        name = f'{output_stem(path, files)}_cam'
        yield name, draw_cams(pictures, models), numbers


def main(argv=None):
    parser = looking_parser(__doc__, 'cam')
    add = parser.add_argument
    kinds = dict(choices=METHODS, default=['grad-cam'])
    add('--method', nargs='+', help='methods (default: grad-cam)', **kinds)
    text = 'number of the class, from 0 (default: the predicted one)'
    add('--category', type=number(int, 0, 10**6), metavar='K', help=text)
    run(parser, argv, draw, whole=True)


if __name__ == '__main__':
    main()
