"""Measures files of tools/deployment/export.py --half of small trained classifiers.

Each has four stages of 1, 2, 4 and 2 blocks, and is trained on crops of 112 pixels of
TRAIN, a folder of photos for each class, such as Imagenette's. Weights are kept in
WEIGHTS, and taken if they are there. Photos of VAL are measured at 224 pixels: top-1 in
float32, and in a file that rounds each result in float16, whose logits and classes are
compared with those in float32.

  python benchmarks/half_trained.py --train imagenette/train --val imagenette/val \\
      --weights . --out half_trained.json
"""

import logging
import math
import tempfile
from pathlib import Path

import common
import numpy as np
import torch
from half_files import MODELS, add_row, difference, normalize, run
from mmengine.model import revert_sync_batchnorm
from PIL import Image, ImageOps
from torch.nn.functional import affine_grid, cross_entropy, grid_sample

from mmlinattn.cli.parser import Parser
from mmlinattn.deployment import ExportedModel, export
from mmlinattn.deployment.rounding import Rounded
from mmlinattn.engine import build_model
from mmlinattn.utils import load_config

ARCH = dict(embed_dims=[32, 64, 96, 160], depths=[1, 2, 4, 2], num_heads=[1, 2, 3, 5])
SWIN = dict(embed_dims=32, depths=[1, 2, 4, 2], num_heads=[1, 2, 4, 8])
# options of a backbone
OPTIONS = {
    'SOFT++-T': dict(arch=ARCH, img_size=112, out_type='avg_featmap'),
    'SOFT++-T, linear': dict(arch='micro', img_size=112, out_type='avg_featmap'),
    'Swin-T, ELFATT': dict(arch=SWIN),
    'MLLA-T': dict(arch=ARCH),
    'RAVLT-S': dict(arch=ARCH),
    'MAViT-T': dict(arch=ARCH),
}
BATCH, RATE, SIDE, STORED = 32, 1e-3, 112, 144


def build(name):
    """Return a classifier of ten classes."""
    torch.manual_seed(0)
    cfg = load_config(str(common.ROOT / f'configs/{MODELS[name]}_in1k.py'))
    cfg.model.backbone.update(OPTIONS[name], drop_path_rate=0.0)
    neck = cfg.model.get('neck')
    channels = 8 * SWIN['embed_dims'] if 'Swin' in name else ARCH['embed_dims'][-1]
    if neck is not None and 'in_channels' in neck:
        neck.update(in_channels=channels, out_channels=2 * channels)
        channels *= 2
    cfg.model.head.update(num_classes=10, in_channels=channels)
    model = revert_sync_batchnorm(build_model(cfg))
    model.init_weights()
    return model


def read(folder, side, most=None):
    """Return photos (B, H, W, 3), their middle, and classes (B,), which take turns."""
    folders = [sorted(x.iterdir()) for x in sorted(folder.iterdir())]
    rows = [(path, i) for i, paths in enumerate(folders) for path in paths]
    if most is not None:
        turns = zip(*folders)
        rows = [(path, i) for turn in turns for i, path in enumerate(turn)][:most]
    photos = [
        np.array(ImageOps.fit(Image.open(x).convert('RGB'), (side, side)))
        for x, _ in rows
    ]
    return torch.from_numpy(np.stack(photos)), torch.tensor([i for _, i in rows])


def draw_crops(photos):
    """Crop of 35 to 100 % of photos (B, H, W, 3), mirrored or not."""
    num = len(photos)
    stretch = torch.empty(num).uniform_(math.log(3 / 4), math.log(4 / 3)).exp().sqrt()
    share = torch.empty(num).uniform_(0.35, 1).sqrt()
    theta = torch.zeros(num, 2, 3)
    for axis, extent in enumerate((share * stretch, share / stretch)):
        extent = extent.clamp(max=1)
        theta[:, axis, axis] = extent
        theta[:, axis, 2] = torch.empty(num).uniform_(-1, 1) * (1 - extent)
    theta[:, 0, 0] *= torch.empty(num).uniform_(-1, 1).sign()
    grid = affine_grid(theta, (num, 3, SIDE, SIDE), align_corners=False)
    photos = photos.permute(0, 3, 1, 2).float()
    return grid_sample(photos, grid, padding_mode='border', align_corners=False)


def train(model, photos, classes, epochs):
    """Train a model with AdamW and a half cosine."""
    groups = [[], []]
    for parameter in model.parameters():
        groups[parameter.dim() >= 2].append(parameter)
    optimizer = torch.optim.AdamW(
        [
            dict(params=params, weight_decay=decay)
            for params, decay in zip(groups, (0, 0.05))
        ],
        lr=RATE,
    )
    an_epoch = len(photos) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, epochs * an_epoch, pct_start=0.1, cycle_momentum=False
    )
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(photos))[: an_epoch * BATCH].split(BATCH):
            crops = draw_crops(photos[batch])
            out = model.head(model.extract_feat(normalize(crops)))
            loss = cross_entropy(out, classes[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()


@torch.no_grad()
def measure(model, photos, classes):
    """Top-1 in both precisions, the worst and the median error, other classes."""
    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'half.onnx')
        export(ExportedModel(model), path, half=True)
        rounded = Rounded(path, notes=['max'])
    rows = []
    for photo, expected in zip(photos.split(1), classes.tolist()):
        image = normalize(photo.permute(0, 3, 1, 2))
        single = run(model, image)
        (output, *_), largest, _ = rounded.run(image.numpy())
        half = torch.from_numpy(output)
        x, y = single.argmax().item(), half.argmax().item()
        error = difference(half, single)
        rows.append((x == expected, y == expected, x != y, error, largest))
    single, half, other, errors, largest = np.array(rows, float).T
    return dict(
        single=single.mean(),
        half=half.mean(),
        other=other.mean(),
        error=errors.max(),
        median=np.median(errors),
        largest=largest.max(),
        photos=len(rows),
    )


def parse_args():
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add('--train', type=Path, required=True, help='a folder of photos for each class')
    add('--val', type=Path, required=True, help='the same, to measure')
    add('--weights', type=Path, required=True, help='a folder')
    add('--out', type=Path, required=True, metavar='FILE', help='JSON, rows are added')
    add('--only', default='', help='part of a name')
    add('--epochs', type=int, default=3, help='of a training (3)')
    add('--photos', type=int, default=500, help='to measure (500)')
    return parser.parse_args()


def main():
    logging.disable(logging.INFO)  # what each weight was initialized by
    args = parse_args()
    for name in OPTIONS:
        if args.only not in name:
            continue
        model = build(name)
        weights = args.weights / f'{name}.pth'
        if weights.exists():
            model.load_state_dict(torch.load(weights))
        else:
            train(model, *read(args.train, STORED), args.epochs)
            torch.save(model.state_dict(), weights)
        row = measure(model, *read(args.val, 224, args.photos))
        add_row(args.out, dict(model=name, **row))


if __name__ == '__main__':
    main()
