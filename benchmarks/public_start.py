"""Whether the weights of a printed SOFT++ start a linear one: micro models on Imagenette, one CPU core.

TRAIN and VAL are NumPy archives of Imagenette's photos as WebP, `data` (bytes of all), `sizes` and
`labels`: 144 and 224 pixels, the middle of each photo. Every tenth photo of TRAIN chooses the rate.
Results are docs/claims/public_start.json; weights are kept beside FILE.

    python benchmarks/public_start.py --train TRAIN --val VAL --out FILE
"""

import argparse
import io
import json
import logging
import math
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import affine_grid, cross_entropy, grid_sample

logging.disable(logging.INFO)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mmlinattn.registry import build_model  # noqa: E402

BATCH = 32
MEAN = torch.tensor((123.675, 116.28, 103.53))[:, None, None]
STD = torch.tensor((58.395, 57.12, 57.375))[:, None, None]
ARCH = dict(embed_dims=[32, 64, 96, 160], depths=[1, 2, 4, 2], num_heads=[1, 2, 3, 5])
PRINTED = dict(type='SOFTPlusPlus', arch=ARCH, img_size=112)
LINEAR = dict(type='LinearSOFTPlusPlus', arch='micro', img_size=112)
RATE = 1e-3


def unpack(path: str, side: int) -> tuple[torch.Tensor, torch.Tensor]:
    archive = np.load(path)
    starts = np.concatenate(([0], archive['sizes'].cumsum()))
    data = archive['data'].tobytes()
    images = []
    for start, end in zip(starts[:-1], starts[1:]):
        image = Image.open(io.BytesIO(data[start:end])).convert('RGB')
        if image.width != side:
            image = image.resize((side, side), Image.BICUBIC)
        images.append(np.asarray(image))
    return torch.from_numpy(np.stack(images)), torch.from_numpy(archive['labels'])


class Classifier(nn.Module):
    def __init__(self, backbone: dict) -> None:
        super().__init__()
        self.backbone = build_model(backbone)
        self.backbone.init_weights()
        self.head = nn.Linear(self.backbone.feature_channels[-1], 10)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone((images - MEAN) / STD)[-1].mean((2, 3)))


def factor(step: int, steps: int) -> float:
    """Share of the rate: a tenth of linear warm-up, then a half cosine."""
    first = max(round(0.1 * steps), 1)
    if step < first:
        return (step + 1) / first
    return 0.5 * (1 + math.cos(math.pi * (step - first) / max(steps - first, 1)))


def draw_crops(num: int, generator: torch.Generator) -> torch.Tensor:
    def uniform(low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(num, generator=generator)

    stretch = uniform(math.log(3 / 4), math.log(4 / 3)).exp().sqrt()
    share = uniform(0.35, 1.0).sqrt()
    theta = torch.zeros(num, 2, 3)
    for axis, extent in enumerate((share * stretch, share / stretch)):
        extent = extent.clamp(max=1)
        theta[:, axis, axis] = extent
        theta[:, axis, 2] = uniform(-1, 1) * (1 - extent)
    theta[:, 0, 0] *= uniform(-1, 1).sign()
    return theta


def train(
    model: Classifier,
    images: torch.Tensor,
    labels: torch.Tensor,
    index: torch.Tensor,
    epochs: int,
    rate: float,
    seed: int,
) -> None:
    generator = torch.Generator().manual_seed(seed)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [dict(params=matrices, weight_decay=0.05), dict(params=vectors)],
        lr=rate,
        weight_decay=0.0,
    )
    an_epoch = len(index) // BATCH
    model.train()
    for step in range(epochs * an_epoch):
        if step % an_epoch == 0:
            order = index[torch.randperm(len(index), generator=generator)]
        batch = order[step % an_epoch * BATCH :][:BATCH]
        photos = images[batch].permute(0, 3, 1, 2).float()
        grid = affine_grid(
            draw_crops(BATCH, generator), (BATCH, 3, 112, 112), align_corners=False
        )
        photos = grid_sample(photos, grid, padding_mode='border', align_corners=False)
        for group in optimizer.param_groups:
            group['lr'] = rate * factor(step, epochs * an_epoch)
        loss = cross_entropy(model(photos), labels[batch], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@torch.no_grad()
def top1(model: Classifier, images: torch.Tensor, labels: torch.Tensor) -> float:
    model.eval()
    right = 0
    for i in range(0, len(labels), 128):
        logits = model(images[i : i + 128].permute(0, 3, 1, 2).float())
        right += (logits.argmax(1) == labels[i : i + 128]).sum().item()
    return round(right / len(labels), 4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument('--train', required=True)
    parser.add_argument('--val', required=True)
    parser.add_argument('--out', required=True, type=Path)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)

    images, labels = unpack(args.train, 144)
    every = torch.arange(len(labels))
    is_check = every % 10 == 0
    middle = nn.functional.interpolate(
        images[is_check].permute(0, 3, 1, 2).float(), size=(112, 112), mode='area'
    ).permute(0, 2, 3, 1)
    check = (middle, labels[is_check])
    val = {side: unpack(args.val, side) for side in (112, 224)}
    results: dict = dict(
        machine=f'{platform.machine()}, one thread, torch {torch.__version__}',
        seed=args.seed,
        rows=[],
    )
    start = None

    def run(
        name: str, config: dict, epochs: int, rate: float = RATE, tune: bool = False
    ) -> dict:
        began = time.time()
        torch.manual_seed(args.seed)
        model = Classifier(config)
        if name.startswith('from printed'):
            model.load_state_dict(start)
        index = every[~is_check] if tune else every
        train(model, images, labels, index, epochs, rate, args.seed)
        row = dict(name=name, epochs=epochs, rate=rate)
        if tune:
            row['check'] = top1(model, *check)
        else:
            row.update({str(s): top1(model, *val[s]) for s in val})
            torch.save(
                model.state_dict(),
                args.out.with_name(f'{name} {epochs} {args.seed}.pth'.replace(' ', '_')),
            )
        row['minutes'] = round((time.time() - began) / 60, 1)
        results['rows'].append(row)
        args.out.write_text(json.dumps(results, indent=1))
        print(row, flush=True)
        return dict(row, state=model.state_dict())

    start = run('printed', PRINTED, 12)['state']
    run('from printed, linear', LINEAR, 0)
    rates = (1e-3, 2.5e-4)
    tuned = [run('from printed, linear', LINEAR, 1, rate, tune=True) for rate in rates]
    rate = max(tuned, key=lambda row: row['check'])['rate']
    for epochs in (1, 2, 4):
        run('from printed, linear', LINEAR, epochs, rate)
    for epochs in (1, 2, 4, 12):
        run('scratch linear', LINEAR, epochs)


if __name__ == '__main__':
    main()
