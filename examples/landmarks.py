"""Draws which tokens of a photo the landmarks of the linear SOFT++ weigh.

    python examples/landmarks.py rocket.jpg --photos folder --out landmarks.png

A small classifier learns to tell crops of the photos of a folder apart, one class for
each photo. The figure has the weights of three landmarks of its first attention, as
initialized, trained, and where means of cells take the landmarks' place.
"""

import argparse
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import nn
from torch.nn.functional import affine_grid, cross_entropy, grid_sample
from torchvision.io import ImageReadMode, read_image
from torchvision.transforms.functional import normalize, resize

from mmlinattn.analysis import landmark_weights, watch
from mmlinattn.models import LinearSOFTPlusPlus

STORED, SIDE, BATCH, RATE = 256, 112, 16, 1e-3
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# landmarks, by where their cells are on the photo: down, right
PLACES = (0.36, 0.5), (0.36, 0.93), (0.93, 0.5)


def read(path, side):
    """Return a photo (3, side, side), normalized."""
    photo = read_image(str(path), ImageReadMode.RGB)
    return normalize(resize(photo, [side, side], antialias=True) / 255, MEAN, STD)


def draw_crops(photos):
    """Return crops of photos (B, 3, H, W) with 0.25 to 1 of the sides, mirrored or
    not."""
    scale = torch.empty(len(photos), 2).uniform_(0.25, 1)
    shift = (1 - scale) * torch.empty(len(photos), 2).uniform_(-1, 1)
    scale[:, 0] *= torch.randint(2, (len(photos),)) * 2 - 1
    places = torch.cat((torch.diag_embed(scale), shift.unsqueeze(-1)), -1)
    shape = len(photos), 3, SIDE, SIDE
    grid = affine_grid(places, shape, align_corners=False)
    return grid_sample(photos, grid, padding_mode='reflection', align_corners=False)


def train(model, photos, num_steps):
    """Trains a classifier of photos by their crops; returns the share of new crops that
    it tells right."""
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, max(num_steps, 1))
    for _ in range(num_steps):
        labels = torch.randint(len(photos), (BATCH,))
        loss = cross_entropy(model(draw_crops(photos[labels])), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    labels = torch.arange(len(photos)).repeat(8)
    with torch.no_grad():
        return (model(draw_crops(photos[labels])).argmax(-1) == labels).double().mean()


def weights_of(backbone, photo, averages=False):
    """Weights (landmarks, H, W) of the first attention, and its grid of landmarks."""
    calls = []

    def look(call):
        if not calls:
            grid = call.module.sampler.grid(call.hw_shape)
            weights = landmark_weights(call, averages)[0, 0]
            calls.append((weights.unflatten(-1, call.hw_shape), grid))

    with torch.no_grad(), watch(backbone.eval(), look):
        backbone(photo.unsqueeze(0))
    return calls[0]


def half_of(weights):
    """Share of the tokens (H, W) that have half of the weight, the heaviest first."""
    sums = weights.flatten().sort(descending=True).values.cumsum(0)
    return (int((sums < 0.5).sum()) + 1) / weights.numel()


def draw(photo, rows, out):
    """Draws rows of (title, weights, grid), with the cells of landmarks."""
    shape = len(rows), len(PLACES) + 1
    figure = Figure((2.1 * shape[1], 2.3 * shape[0]), layout='constrained')
    grid_of_axes = figure.subplots(*shape, squeeze=False)
    pixels = (photo * torch.tensor(STD).view(3, 1, 1)).permute(1, 2, 0)
    pixels = (pixels + torch.tensor(MEAN)).clamp(0, 1)
    for (title, weights, (rows_of, columns)), axes in zip(rows, grid_of_axes):
        axes[0].imshow(pixels, extent=(0, 1, 1, 0))
        axes[0].set_title(title, fontsize=9)
        for (y, x), axis in zip(PLACES, axes[1:]):
            row, column = int(y * rows_of), int(x * columns)
            of_landmark = weights[row * columns + column]
            axis.imshow(of_landmark, extent=(0, 1, 1, 0), cmap='magma')
            axis.set_title(f'half on {100 * half_of(of_landmark):.0f} %', fontsize=9)
            corner, size = (column / columns, row / rows_of), (1 / columns, 1 / rows_of)
            for place in (axis, axes[0]):
                add_cell(place, corner, *size)
    for axis in grid_of_axes.flat:
        axis.set_axis_off()
    figure.savefig(out, dpi=80)


def add_cell(axis, corner, width, height):
    """Draws the outline of a cell."""
    x, y = corner
    across = [x, x + width, x + width, x, x]
    axis.plot(across, [y, y, y + height, y + height, y], color='cyan', linewidth=1)


def main(*words):
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('photo')
    parser.add_argument('--photos', help='folder of photos, a class each')
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--out', default='landmarks.png')
    args = parser.parse_args(words or None)
    torch.manual_seed(0)
    backbone = LinearSOFTPlusPlus('micro', img_size=SIDE, out_type='avg_featmap')
    photo = read(args.photo, 2 * SIDE)
    rows = [('initialized', *weights_of(backbone, photo))]
    if args.photos:
        paths = sorted(Path(args.photos).iterdir())
        photos = torch.stack([read(path, STORED) for path in paths])
        model = nn.Sequential(
            backbone.train(),
            Last(),
            nn.Linear(backbone.feature_channels[-1], len(photos)),
        )
        right = train(model, photos, args.steps)
        print(f'{100 * right:.0f} % of new crops of {len(photos)} photos are right')
        rows.append(('trained', *weights_of(backbone, photo)))
    rows.append(('means of cells', *weights_of(backbone, photo, averages=True)))
    draw(photo, rows, args.out)
    print(f'wrote {args.out}')


class Last(nn.Module):
    """The last of several outputs."""

    def forward(self, outs):
        return outs[-1]


if __name__ == '__main__':
    main()
