"""Measures files of tools/deployment/export.py --half beside those in float32.

Networks are scaled like trained ones. Layers keep the size of what they project, and
one output in a hundred is eight times as large; norms have weights of 0.5 to 1.5,
statistics of BatchNorm come from photos, and LayerScale is 1. The last layer of a
segmentor is fitted to label maps by least squares, so that its classes lie as far apart
as those of a trained one.

A processor without float16 hides what a file does: ONNX Runtime computes operators in
float32, and rounds later or not at all. So the file also runs as on a GPU at worst:
every result in float16 is rounded. Noted are the largest of them, and the largest sum
of magnitudes in a product, which no partial sum exceeds in any order.

  python benchmarks/half.py --photos CamVid/test --labels CamVid/testannot --out half
"""

import json
import re
import tempfile
from pathlib import Path

import common
import numpy as np
import torch
from mmcv.cnn.bricks.scale import LayerScale
from mmengine.model import revert_sync_batchnorm
from PIL import Image
from torch import nn

from mmlinattn.deployment import ExportedModel, export
from mmlinattn.deployment.rounding import Rounded
from mmlinattn.engine import build_model
from mmlinattn.utils import load_config
from mmlinattn_tools.cli import Parser

MODELS = {
    'SOFT++-T': 'soft/softpp-t',
    'SOFT++-T, linear': 'soft/softpp-t-linear',
    'SOFT-T': 'soft/soft-t',
    'Swin-T, ELFATT': 'elfatt/swin-t-elfatt',
    'MLLA-T': 'mlla/mlla-t',
    'RAVLT-S': 'ravlt/ravlt-s',
    'MAViT-T': 'mavit/mavit-t',
}
SIZES = ((224, 224), (800, 1344))
NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm2d)
OUTLIERS = 8.0


def build(name, is_segmentor, num_classes=12):
    """A classifier, or a segmentor with UperNet, scaled like a trained one."""
    family, _, model = MODELS[name].partition('/')
    upernet = f'upernet_{model}_1x_ade20k-512x512'
    path = common.ROOT / 'configs' / family
    cfg = load_config(path / f'{upernet if is_segmentor else f"{model}_in1k"}.py')
    if is_segmentor:
        cfg.model.decode_head.num_classes = num_classes
        cfg.model.pop('auxiliary_head')
    model = revert_sync_batchnorm(build_model(cfg)).eval()
    scale_like_trained(model)
    return model


@torch.no_grad()
def scale_like_trained(model):
    """Gives a model weights like those of the module's docstring."""
    torch.manual_seed(0)
    for module in model.modules():
        if isinstance(module, LayerScale):
            nn.init.ones_(module.weight)
        elif isinstance(module, NORMS):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.2)
        elif isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.normal_(module.weight, std=module.weight[0].numel() ** -0.5)
            is_large = torch.rand(len(module.weight)) < 0.01
            module.weight[is_large] *= OUTLIERS
            if module.bias is not None:
                nn.init.normal_(module.bias, std=0.2)


@torch.no_grad()
def take_statistics(model, images):
    """Sets the statistics of BatchNorm by images (B, 3, H, W)."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the mean of all batches
            module.train()
    for _ in ExportedModel.named_outputs(Wrapped(model), images):
        pass
    model.eval()


class Wrapped:
    """What :meth:`ExportedModel.named_outputs` reads, without a copy."""

    def __init__(self, model):
        self.model = model


@torch.no_grad()
def fit_last_layer(model, images, labels):
    """Fits the classes of a segmentor to label maps (B, H, W), 255 for none."""
    layer = model.decode_head.conv_seg
    kept = []
    handle = layer.register_forward_pre_hook(lambda _, args: kept.append(args[0][0]))
    sums = products = 0
    for image, target in zip(images, labels):
        model.decode_head(model.extract_feat(image[None]))
        features = kept.pop()
        size = features.shape[-2:]
        target = nn.functional.interpolate(target[None, None].float(), size)[0, 0]
        target = target.flatten().long()
        x = features.flatten(1)[:, target < layer.out_channels].T.double()
        x = torch.cat((x, torch.ones(len(x), 1).double()), 1)
        y = torch.eye(layer.out_channels).double()[target[target < layer.out_channels]]
        products, sums = products + x.T @ x, sums + x.T @ y
    handle.remove()
    ridge = 1e-3 * products.diagonal().mean() * torch.eye(len(products)).double()
    weights = 10 * torch.linalg.solve(products + ridge, sums).float()
    layer.weight.copy_(weights[:-1].T[..., None, None])
    layer.bias.copy_(weights[-1])


def read(paths, size, is_label=False):
    """Photos (B, 3, H, W), normalized, or label maps (B, H, W)."""
    arrays = []
    for path in paths:
        image = Image.open(path).convert('P' if is_label else 'RGB')
        kind = Image.Resampling.NEAREST if is_label else Image.Resampling.BICUBIC
        arrays.append(np.array(image.resize(size[::-1], kind)))
    pixels = torch.from_numpy(np.stack(arrays))
    return pixels if is_label else normalize(pixels.permute(0, 3, 1, 2))


def normalize(pixels):
    """Pixels from 0 to 255 as a network takes them."""
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
    """A model's files in float32 and in half precision, and the latter rounded."""

    def __init__(self, model):
        exported = ExportedModel(model)
        self.runs, self.megabytes = {}, []
        with tempfile.TemporaryDirectory() as folder:
            for half in (False, True):
                path = Path(folder, f'{half}.onnx')
                self.runs[half] = export(exported, path, half=half)
                self.megabytes.append(path.stat().st_size / 1e6)
            self.rounded = Rounded(path, threads=torch.get_num_threads())

    def measure(self, images):
        """A row: the largest magnitudes and differences for images."""
        row = dict(largest=0.0, sums=0.0, error=0.0, rounded_error=0.0, same=1.0)
        classes = set()
        for image in images.split(1):
            (expected,), (half,) = (self.runs[x](image) for x in (False, True))
            (rounded,), largest, sums = self.rounded.run(image.numpy())
            rounded = torch.from_numpy(rounded)
            labels, *others = [x.argmax(1) for x in (expected, half, rounded)]
            found = dict(
                largest=largest,
                sums=sums,
                error=difference(half, expected),
                rounded_error=difference(rounded, expected),
            )
            row.update((key, max(value, row[key])) for key, value in found.items())
            same = [(x == labels).float().mean().item() for x in others]
            row['same'] = min(row['same'], *same)
            classes.update(labels.unique().tolist())
        return dict(row, images=len(images), classes=len(classes))


def difference(x, y):
    """The largest difference, relative to the largest entry; infinite for NaN."""
    error = float((x - y).abs().max() / y.abs().max())
    return error if error == error else float('inf')


def rows_of(name, is_segmentor, photos, labels, args):
    """Rows of a model, by size."""
    model = build(name, is_segmentor)
    first, others = photos[: args.fit], photos[args.fit :]
    take_statistics(model, read(first, (352, 480)))
    if is_segmentor:
        maps = read(labels[: args.fit], (352, 480), is_label=True)
        fit_last_layer(model, read(first, (352, 480)), maps)
    files = Files(model)
    single, half = files.megabytes
    kind = 'UperNet' if is_segmentor else 'classifier'
    for size in SIZES:
        if re.search(args.size, f'{size[0]}x{size[1]}'):
            large = size != SIZES[0]
            images = read(others[: args.large if large else args.small], size)
            if not large:
                images = torch.cat((images, extreme_images(*size)))
            row = dict(model=name, kind=kind, size=list(size), single=single, half=half)
            yield dict(row, **files.measure(images))


def parse_args():
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add('--photos', type=Path, required=True, help='folder of photos')
    add('--labels', type=Path, required=True, help='label maps of the same names')
    add('--out', type=Path, required=True, metavar='FILE', help='JSON, rows are added')
    add('--only', default='', help='part of "MODEL, classifier" or "MODEL, UperNet"')
    add('--size', default='', help='part of a size, such as 224')
    add('--fit', type=int, default=8, help='photos for the last layer (8)')
    add('--small', type=int, default=6, help='photos at 224 x 224 (6)')
    add('--large', type=int, default=1, help='photos at 800 x 1344 (1)')
    return parser.parse_args()


def main():
    args = parse_args()
    photos = sorted(args.photos.iterdir())[::12]
    labels = [args.labels / path.name for path in photos]
    rows = json.loads(args.out.read_text()) if args.out.exists() else []
    for name in MODELS:
        for is_segmentor in (False, True):
            title = f'{name}, {"UperNet" if is_segmentor else "classifier"}'
            if args.only not in title:
                continue
            for row in rows_of(name, is_segmentor, photos, labels, args):
                print(row, flush=True)
                rows.append(row)
                args.out.write_text(json.dumps(rows, indent=1))


if __name__ == '__main__':
    main()
