"""Measures files of tools/deployment/export.py --half beside those in float32.

Networks are scaled like trained ones: by --scale trained as benchmarks/half_trained.py
leaves them, without it to be hard. Then layers keep the size of what they project, and
one output in a hundred is eight times as large; norms have weights of 0.5 to 1.5.
Statistics of BatchNorm come from photos, and LayerScale is 1. The last layer is fitted
to classes of photos, or to label maps, by least squares.

A processor without float16 hides what a file does: ONNX Runtime computes in float32,
and rounds later or not at all. So the file also runs as on a GPU at worst, where every
result in float16 is rounded. Noted are the largest of them, and the largest sum of
magnitudes in a product, which no partial sum exceeds in any order. Beside it, the file
is measured that ONNX Runtime's own converter writes with its defaults; MLLA's can't be
read.

  python benchmarks/half_files.py --photos CamVid/test --maps CamVid/testannot \\
      --classes imagenette/val --out half.json
"""

import json
import shutil
import tempfile
from pathlib import Path

import common
import numpy as np
import onnx
import torch
from mmengine.model import revert_sync_batchnorm
from onnxruntime.transformers.float16 import convert_float_to_float16
from PIL import Image
from torch import nn

from mmlinattn.cli.parser import Parser
from mmlinattn.deployment import ExportedModel, export
from mmlinattn.deployment.formats import open_onnx
from mmlinattn.deployment.half import half_scopes, halve_file
from mmlinattn.deployment.rounding import Rounded
from mmlinattn.engine import build_model
from mmlinattn.models.layers.residuals import LayerScale
from mmlinattn.utils import load_config

MODELS = {
    'SOFT++-T': 'soft/softpp-t',
    'SOFT++-T, linear': 'soft/softpp-t-linear',
    'Swin-T, ELFATT': 'elfatt/swin-t-elfatt',
    'MLLA-T': 'mlla/mlla-t',
    'RAVLT-S': 'ravlt/ravlt-s',
    'MAViT-T': 'mavit/mavit-t',
    'SOFT-T': 'soft/soft-t',
}
SMALL, LARGE = (224, 224), (800, 1344)
# of weights and biases of norms, rows of weights in blocks and outside, and one row in
# a hundred
SCALES = {
    'hard': dict(norm=0.5, bias=0.2, block=1.0, other=1.0, largest=8.0),
    'trained': dict(norm=0.1, bias=0.05, block=0.4, other=0.8, largest=2.5),
}
NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm2d)


def build(name, is_segmentor, num_classes, scale='hard'):
    """Return a classifier, or a segmentor with UperNet, scaled like a trained one."""
    torch.manual_seed(0)
    family, _, model = MODELS[name].partition('/')
    upernet = f'upernet_{model}_1x_ade20k-512x512'
    config = upernet if is_segmentor else f'{model}_in1k'
    cfg = load_config(str(common.ROOT / 'configs' / family / f'{config}.py'))
    if is_segmentor:
        cfg.model.decode_head.num_classes = num_classes
        cfg.model.pop('auxiliary_head')
    else:
        cfg.model.head.num_classes = num_classes
    model = revert_sync_batchnorm(build_model(cfg)).eval()
    scale_like_trained(model, **SCALES[scale])
    return model


@torch.no_grad()
def scale_like_trained(model, norm, bias, block, other, largest):
    """Give a model weights of a scale."""
    torch.manual_seed(0)
    for name, module in model.named_modules():
        if isinstance(module, LayerScale):
            nn.init.ones_(module.weight)
        elif isinstance(module, NORMS):
            nn.init.uniform_(module.weight, 1 - norm, 1 + norm)
            nn.init.normal_(module.bias, std=bias)
        elif isinstance(module, (nn.Linear, nn.Conv2d)):
            size = block if '.blocks.' in name else other
            nn.init.normal_(module.weight, std=size * module.weight[0].numel() ** -0.5)
            module.weight[torch.rand(len(module.weight)) < 0.01] *= largest
            if module.bias is not None:
                nn.init.normal_(module.bias, std=bias)


def head_of(model):
    """Return the part of a model that has the last layer."""
    return model.decode_head if hasattr(model, 'decode_head') else model.head


@torch.no_grad()
def run(model, images):
    """Return the logits of images (B, 3, H, W)."""
    return head_of(model)(model.extract_feat(images))


def take_statistics(model, images):
    """Set the statistics of BatchNorm by images (B, 3, H, W)."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the mean of all batches
            module.train()
    run(model, images)
    model.eval()


@torch.no_grad()
def fit_last_layer(model, images, targets):
    """Fit the last layer to classes (B,) of images (B, 3, H, W), or to label maps (B,
    H, W), in which further numbers stand for no class."""
    head = head_of(model)
    layer = head.conv_seg if targets.dim() == 3 else head.fc
    inputs = []
    handle = layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    sums = products = 0
    num_classes = len(layer.weight)
    for image, target in zip(images.split(1), targets.split(1)):
        run(model, image)
        x = inputs.pop().double()
        if x.dim() == 4:
            target = nn.functional.interpolate(target[None].float(), x.shape[-2:])
            x = x[0].flatten(1).T
        x = torch.cat((x, torch.ones(len(x), 1).double()), 1)
        target = target.flatten().long()
        x, target = x[target < num_classes], target[target < num_classes]
        products = products + x.T @ x
        sums = sums + x.T @ torch.eye(num_classes).double()[target]
    handle.remove()
    ridge = 1e-3 * products.diagonal().mean() * torch.eye(len(products)).double()
    weights = 10 * torch.linalg.solve(products + ridge, sums).float()
    layer.weight.copy_(weights[:-1].T.reshape(layer.weight.shape))
    layer.bias.copy_(weights[-1])


def read(paths, size, is_label=False):
    """Return photos (B, 3, H, W), normalized, or label maps (B, H, W)."""
    arrays = []
    for path in paths:
        image = Image.open(path)
        image = image if is_label else image.convert('RGB')
        kind = Image.Resampling.NEAREST if is_label else Image.Resampling.BICUBIC
        arrays.append(np.array(image.resize(size[::-1], kind)))
    pixels = torch.from_numpy(np.stack(arrays))
    return pixels if is_label else normalize(pixels.permute(0, 3, 1, 2))


def normalize(pixels):
    """Return pixels from 0 to 255 as a network takes them."""
    mean = torch.tensor([123.675, 116.28, 103.53]).view(3, 1, 1)
    std = torch.tensor([58.395, 57.12, 57.375]).view(3, 1, 1)
    return (pixels.float() - mean) / std


def extreme_images(height, width):
    """White, black, a checkerboard, and one white pixel."""
    odd = (torch.arange(height)[:, None] + torch.arange(width)) % 2
    pixel = torch.zeros(height, width)
    pixel[height // 2, width // 2] = 1
    kinds = torch.stack((torch.ones_like(pixel), torch.zeros_like(pixel), odd, pixel))
    return normalize(255 * kinds[:, None].expand(-1, 3, -1, -1))


class Files:
    """A model's files in float32, of ``--half``, and of a converter of everything if
    it is compared."""

    def __init__(self, model, has_converter):
        exported = ExportedModel(model)
        with tempfile.TemporaryDirectory() as folder:
            single, half, converted = (Path(folder, f'{i}.onnx') for i in range(3))
            self.single = export(exported, single)
            shutil.copy(single, half)  # what an export writes before it halves a file
            scopes = half_scopes(exported, exported.example(SMALL, 1), SMALL)
            halve_file(half, scopes)
            self.half = open_onnx(half)
            self.megabytes = [x.stat().st_size / 1e6 for x in (single, half)]
            self.rounded = Rounded(half)
            self.converted = None
            if has_converter:
                model = onnx.load(str(single))
                model = convert_float_to_float16(model, keep_io_types=True)
                onnx.save(model, str(converted))
                self.converted = Rounded(converted)
            self.rounded_large = Rounded(half, notes=['max'])  # sums take as long

    def measure(self, photos, others):
        """Return the worst of photos; of other images only magnitudes count."""
        rows = [self.measure_one(image) for image in photos.split(1)]
        more = [self.measure_one(image, False) for image in others]
        classes = set().union(*(row.pop('classes') for row in rows))
        row = {key: max(x[key] for x in rows) for key in rows[0]}
        for key in ('largest', 'sums'):
            row[key] = max(x[key] for x in (row, *more))
        return dict(row, photos=len(photos), classes=len(classes))

    def measure_one(self, image, is_compared=True):
        """Return magnitudes, errors and shares of other labels for an image. Large
        images take too long for all files."""
        is_small = tuple(image.shape[2:]) == SMALL
        rounding = self.rounded if is_small else self.rounded_large
        (rounded, *_), largest, sums = rounding.run(image.numpy())
        row = dict(largest=largest, sums=sums)
        if not is_compared:
            return row
        expected, *_ = self.single(image)
        labels = expected.argmax(1)
        row.update(classes={*labels.flatten().tolist()})
        results = dict(rounded=rounded)
        if is_small:
            (results['half'],) = self.half(image)
        if is_small and self.converted is not None:
            (results['converted'],), *_ = self.converted.run(image.numpy())
        for key, result in results.items():
            result = torch.as_tensor(result)
            row[f'{key}_error'] = difference(result, expected)
            others = result.argmax(1) != labels
            row[f'{key}_other'] = others.float().mean().item()
            if key == 'rounded':
                row['margin'] = largest_margin(expected, others)
        return row


def difference(x, y):
    """Return the largest difference, relative to the largest entry; infinite for
    NaN."""
    error = float((x - y).abs().max() / y.abs().max())
    return error if error == error else float('inf')


def largest_margin(logits, others):
    """Return how far the best class is before the next one, at most, where the label is
    another, relative to the largest logit."""
    best, next_one = logits.topk(2, 1).values.unbind(1)
    margins = (best - next_one)[others]
    return float(margins.max() / logits.abs().max()) if len(margins) else 0.0


def prepare(name, is_segmentor, args):
    """Return a model, and the paths of the photos to measure it on."""
    if is_segmentor:
        maps = sorted(args.maps.iterdir())[::12]
        paths = [args.photos / path.name for path in maps]
        targets = read(maps[:8], SMALL, is_label=True)
        images = read(paths[:8], SMALL)
    else:
        folders = [sorted(x.iterdir()) for x in sorted(args.classes.iterdir())]
        paths = [path for row in zip(*folders) for path in row]
        targets = torch.arange(len(folders)).repeat(8)
        images = read(paths[: len(targets)], SMALL)
    model = build(name, is_segmentor, 12 if is_segmentor else len(folders), args.scale)
    take_statistics(model, images[:8])
    fit_last_layer(model, images, targets)
    return model, paths[len(targets) :]


def rows_of(name, is_segmentor, args):
    """Rows of a model, by size."""
    model, paths = prepare(name, is_segmentor, args)
    files = Files(model, not args.no_converter)
    kind = 'UperNet' if is_segmentor else 'classifier'
    row = dict(model=name, kind=kind, scale=args.scale)
    row.update(zip(('single', 'half'), files.megabytes))
    if args.small:
        photos = read(paths[: args.small], SMALL)
        others = extreme_images(*SMALL).split(1)
        yield dict(row, size=SMALL, **files.measure(photos, others))
    if args.large:
        photos = read(paths[: args.large], LARGE)
        yield dict(row, size=LARGE, **files.measure(photos, []))


def add_row(path, row):
    """Print a row, and add it to those of a JSON file, which need not be there."""
    print(row, flush=True)
    rows = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([*rows, row], indent=1))


def parse_args():
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add('--photos', type=Path, required=True, help='folder of photos')
    add('--maps', type=Path, required=True, help='label maps of the same names')
    add('--classes', type=Path, required=True, help='a folder of photos for each class')
    add('--out', type=Path, required=True, metavar='FILE', help='JSON, rows are added')
    add('--only', default='', help='part of "MODEL, classifier" or "MODEL, UperNet"')
    add('--small', type=int, default=10, help='photos at 224 x 224 (10)')
    add('--large', type=int, default=1, help='photos at 800 x 1344 (1)')
    add('--scale', choices=SCALES, default='hard', help='of the weights (hard)')
    add('--no-converter', action='store_true', help='leaves the converter out')
    return parser.parse_args()


def main():
    args = parse_args()
    for name in MODELS:
        for is_segmentor in (False, True):
            kind = 'UperNet' if is_segmentor else 'classifier'
            if args.only in f'{name}, {kind}':
                for row in rows_of(name, is_segmentor, args):
                    add_row(args.out, row)


if __name__ == '__main__':
    main()
