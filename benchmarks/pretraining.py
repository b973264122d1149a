"""Asks what a classifier's training gives to a model of places.

Pyramids with the widths of SOFT++-Micro are trained on Imagenette, with the class token
or the mean of all tokens, AttnScale, FeatScale or both. Then each of them, and the same
model from random weights, learns to tell the class of the cell at each place of
photographs of blood cells, with one more layer on all four maps: a stand-in for a
detector. Two controls tell whether this can decide: PVTv2 must gain by its pretraining,
and a model that was pretrained with shuffled labels may not. Of each pretrained model,
the effective rank of its maps and the cosine of neighbors are measured.

Rates of the second training are chosen by the loss of a run with another seed, on a
grid at whose edges they are not. Results are written after each training, and a second
start adds what is missing.

    python benchmarks/pretraining.py --imagenette DIR --cells DIR --out FILE

DIR are the folders of https://github.com/fastai/imagenette (train, val) and
https://github.com/Shenggan/BCCD_Dataset (BCCD).
"""

import argparse
import math
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import common  # noqa: F401
import numpy as np
import torch
from PIL import Image
from studies import Study, study_parser, tune
from torch import Tensor, nn
from torch.nn.functional import (
    adaptive_avg_pool2d,
    affine_grid,
    cosine_similarity,
    cross_entropy,
    grid_sample,
    interpolate,
)

from mmlinattn.models import LinearSOFTPlusPlus
from mmlinattn.utils.log import quiet

WIDTHS = (32, 64, 96, 160)
# pixels of Imagenette's squares, of crops of them, and of photographs of cells
SQUARE, CROP, CELLS = 112, 96, (192, 256)
CELL_CLASSES = ('RBC', 'WBC', 'Platelets')
STRIDE = 8
EPOCHS, BATCH = 4, 32
PRETRAINING_RATES = (0.002, 0.001, 0.0005)
STEPS, CELL_BATCH = 100, 4
RATES = (0.001, 0.002, 0.004)
MOST_RATES, TUNING_SEED = 6, 100
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


class Start(NamedTuple):
    """A pretraining.

    Args:
        backbone: Of :func:`build`.
        options: Of the linear SOFT++.
        shuffled: Labels are those of other photographs.
        rate: The highest rate.
    """

    backbone: str
    options: dict[str, Any]
    shuffled: bool = False
    rate: float = PRETRAINING_RATES[0]


STARTS = {
    'PVTv2': Start('PVTv2', {}),
    'class token': Start('SOFT++', dict(out_type='cls_token')),
    'mean of tokens': Start('SOFT++', dict(out_type='avg_featmap')),
    'FeatScale': Start('SOFT++', dict(out_type='cls_token', feat_scale=True)),
    'AttnScale': Start('SOFT++', dict(out_type='cls_token', attn_scale=True)),
    'both scales': Start(
        'SOFT++', dict(out_type='cls_token', feat_scale=True, attn_scale=True)
    ),
    'shuffled labels': Start('SOFT++', dict(out_type='cls_token'), shuffled=True),
}
STARTS |= {
    f'{name}, rate {rate}': start._replace(rate=rate)
    for name, start in STARTS.items()
    for rate in PRETRAINING_RATES[1:]
}


class MeanOfMap(nn.Module):
    """A backbone's last map, averaged over places (B, C)."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (self.backbone(x)[-1].mean((2, 3)),)


def build(start: Start, is_classifier: bool) -> nn.Module:
    """Return a backbone that returns (vector,) as a classifier's, and four maps
    otherwise."""
    if start.backbone == 'PVTv2':
        from mmdet.models import PyramidVisionTransformerV2

        # MMDetection's widths are multiples of the first
        model = PyramidVisionTransformerV2(
            embed_dims=WIDTHS[0],
            num_heads=[width // WIDTHS[0] for width in WIDTHS],
            num_layers=[2, 2, 2, 2],
            mlp_ratios=(4, 4, 4, 4),
            drop_path_rate=0.0,
        )
        with quiet():
            model.init_weights()
        return MeanOfMap(model) if is_classifier else model
    options = dict(start.options)
    out_type = options.pop('out_type')
    model = LinearSOFTPlusPlus(
        'micro',
        img_size=CROP,
        drop_path_rate=0.0,
        out_indices=(3,) if is_classifier else (0, 1, 2, 3),
        out_type=out_type if is_classifier else 'featmap',
        **options,
    )
    with quiet():
        model.init_weights()
    return model


def normalized(pixels: Tensor) -> Tensor:
    """Return pixels of 0 to 255 (B, 3, H, W) as models take them."""
    mean, std = (torch.tensor(x).view(3, 1, 1) for x in (MEAN, STD))
    return (pixels.float() - mean) / std


def read_squares(folder: Path) -> tuple[Tensor, Tensor]:
    """Imagenette's photographs (N, 3, 112, 112), and their labels (N,)."""
    squares, labels = [], []
    for label, name in enumerate(sorted(x.name for x in folder.iterdir())):
        for path in sorted((folder / name).iterdir()):
            image = Image.open(path).convert('RGB')
            scale = SQUARE / min(image.size)
            image = image.resize([max(round(x * scale), SQUARE) for x in image.size])
            left, top = ((x - SQUARE) // 2 for x in image.size)
            image = image.crop((left, top, left + SQUARE, top + SQUARE))
            squares.append(np.asarray(image).transpose(2, 0, 1))
            labels.append(label)
    return torch.from_numpy(np.stack(squares)), torch.tensor(labels)


def random_crops(squares: Tensor, random: torch.Generator) -> Tensor:
    """Crop of 35 % to all of the squares, half of them flipped (B, 3, 96, 96)."""
    count = len(squares)
    side = torch.empty(count).uniform_(0.35, 1.0, generator=random).sqrt()
    place = torch.rand(count, 2, generator=random) * 2 - 1
    flip = torch.randint(0, 2, (count,), generator=random) * 2 - 1
    transforms = torch.zeros(count, 2, 3)
    transforms[:, 0, 0], transforms[:, 1, 1] = side * flip, side
    transforms[:, :, 2] = place * (1 - side).unsqueeze(1)
    grid = affine_grid(transforms, [count, 3, CROP, CROP], align_corners=False)
    return grid_sample(
        normalized(squares), grid, align_corners=False, padding_mode='reflection'
    )


def set_rate(optimizer: torch.optim.Optimizer, rate: float, done: float) -> None:
    """Set the rate at a share of the training: it rises in the first tenth, and falls
    by a cosine."""
    fall = (1 + math.cos(math.pi * done)) / 2
    for group in optimizer.param_groups:
        group['lr'] = rate * min(10 * done + 0.02, 1) * max(fall, 0.01)


def draw(
    number: int, batch: int, num_batches: int, random: torch.Generator
) -> Iterator[Tensor]:
    """Yield batches of indices in one random order after another, each without the
    rest that is no batch."""
    order = torch.empty(0, dtype=torch.long)
    for _ in range(num_batches):
        if len(order) < batch:
            order = torch.randperm(number, generator=random)
        yield order[:batch]
        order = order[batch:]


def lessen(
    parameters: Iterable[Tensor],
    losses: Iterable[Tensor],
    num_steps: int,
    rate: float,
    decay: float,
) -> None:
    """Train parameters by the losses of steps, each computed after the step before."""
    learning = [x for x in parameters if x.requires_grad]
    optimizer = torch.optim.AdamW(learning, rate, weight_decay=decay, foreach=True)
    for index, loss in enumerate(losses):
        set_rate(optimizer, rate, index / num_steps)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()


def pretrain(
    start: Start, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]
) -> tuple[nn.Module, float]:
    """Return a classifier's backbone, and its share of right photographs."""
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    backbone = build(start, is_classifier=True)
    model = nn.Sequential(backbone, Last(), nn.Linear(WIDTHS[-1], 10))
    squares, labels = train
    if start.shuffled:
        labels = labels[torch.randperm(len(labels), generator=random)]
    num_steps = EPOCHS * (len(squares) // BATCH)
    model.train()

    def losses() -> Iterator[Tensor]:
        for chosen in draw(len(squares), BATCH, num_steps, random):
            scores = model(random_crops(squares[chosen], random))
            yield cross_entropy(scores, labels[chosen], label_smoothing=0.1)

    lessen(model.parameters(), losses(), num_steps, start.rate, decay=0.05)
    model.eval()
    margin, right = (SQUARE - CROP) // 2, 0
    with torch.no_grad():
        for pixels, truth in zip(test[0].split(64), test[1].split(64)):
            x = normalized(pixels[..., margin:-margin, margin:-margin])
            right += int((model(x).argmax(-1) == truth).sum())
    return backbone, right / len(test[1])


class Last(nn.Module):
    """The last of a backbone's outputs."""

    def forward(self, outs: tuple[Tensor, ...]) -> Tensor:
        return outs[-1]


class Cells(NamedTuple):
    """Photographs (N, 3, 192, 256), and the class at each place of stride 8
    (N, 24, 32), 0 where there is no cell."""

    pixels: Tensor
    classes: Tensor


def read_cells(folder: Path, part: str) -> Cells:
    """Return photographs of a part of BCCD. Where cells overlap, the smaller one
    counts."""
    height, width = CELLS
    names = (folder / f'ImageSets/Main/{part}.txt').read_text().split()
    pixels, classes = [], []
    for name in names:
        image = Image.open(folder / f'JPEGImages/{name}.jpg').convert('RGB')
        scale = np.array([width / image.width, height / image.height] * 2) / STRIDE
        image = image.resize((width, height), Image.Resampling.BOX)
        pixels.append(np.asarray(image).transpose(2, 0, 1))
        cells = []
        for node in ElementTree.parse(folder / f'Annotations/{name}.xml').iter(
            'object'
        ):
            corners = ('xmin', 'ymin', 'xmax', 'ymax')
            box = [float(node.findtext(f'bndbox/{key}', '')) for key in corners] * scale
            label = CELL_CLASSES.index(node.findtext('name', '')) + 1
            area = (box[2] - box[0]) * (box[3] - box[1])
            cells.append((-area, label, box.round().astype(int).tolist()))
        grid = np.zeros((height // STRIDE, width // STRIDE), np.int64)
        for _, label, (left, top, right, bottom) in sorted(cells):
            grid[top : max(bottom, top + 1), left : max(right, left + 1)] = label
        classes.append(grid)
    return Cells(
        torch.from_numpy(np.stack(pixels)), torch.from_numpy(np.stack(classes))
    )


class ClassOfPlaces(nn.Module):
    """The class at each place of stride 8, (B, 4, H / 8, W / 8).

    Args:
        with_norms: A LayerNorm stands before each map's convolution.
    """

    def __init__(self, backbone: nn.Module, with_norms: bool) -> None:
        super().__init__()
        self.backbone = backbone
        self.norms = nn.ModuleList(
            nn.GroupNorm(1, width) if with_norms else nn.Identity() for width in WIDTHS
        )
        self.lateral = nn.ModuleList(nn.Conv2d(width, 64, 1) for width in WIDTHS)
        self.head = nn.Sequential(
            nn.GELU(),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(64, 1 + len(CELL_CLASSES), 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        size = [side // STRIDE for side in x.shape[-2:]]
        total = None
        for maps, norm, conv in zip(self.backbone(x), self.norms, self.lateral):
            out = conv(norm(maps))
            if out.shape[-2] > size[0]:
                out = adaptive_avg_pool2d(out, size)
            else:
                out = interpolate(out, size, mode='bilinear', align_corners=False)
            total = out if total is None else total + out
        return self.head(total)


def start_of(start: Start, weights: Any, seed: int) -> nn.Module:
    """Return a backbone of maps with random weights of a seed, or with those of a
    classifier."""
    torch.manual_seed(seed)
    backbone = build(start, is_classifier=False)
    if weights is not None:
        own = backbone.state_dict()
        shared = {key: x for key, x in weights.items() if key in own}
        lost = own.keys() - shared.keys()
        if any(not key.startswith(('norm', 'stages.3.norm')) for key in lost):
            raise ValueError(f'the classifier lacks {sorted(lost)}')
        backbone.load_state_dict({**own, **shared})
    return backbone


def fit(
    backbone: nn.Module,
    with_norms: bool,
    seed: int,
    rate: float,
    train: Cells,
    test: Cells,
) -> tuple[float, float]:
    """Train a model of places, and return its loss on photographs of the test, and the
    share of right places among those with a cell."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    model = ClassOfPlaces(backbone, with_norms).train()

    def losses_of_steps() -> Iterator[Tensor]:
        for chosen in draw(len(train.pixels), CELL_BATCH, STEPS, random):
            x, classes = normalized(train.pixels[chosen]), train.classes[chosen]
            if torch.rand(1, generator=random) < 0.5:
                x, classes = x.flip(-1), classes.flip(-1)
            yield cross_entropy(model(x), classes)

    lessen(model.parameters(), losses_of_steps(), STEPS, rate, decay=0.05)
    model.eval()
    losses, right, num_places = [], 0, 0
    with torch.no_grad():
        for pixels, classes in zip(test.pixels.split(8), test.classes.split(8)):
            scores = model(normalized(pixels))
            losses.append(float(cross_entropy(scores, classes)) * len(pixels))
            of_cells = classes > 0
            right += int((scores.argmax(1) == classes)[of_cells].sum())
            num_places += int(of_cells.sum())
    loss = sum(losses) / len(test.pixels)
    return (loss if math.isfinite(loss) else 1e9), right / num_places


@torch.no_grad()
def measure_maps(backbone: nn.Module, photos: Cells) -> dict[str, list[float]]:
    """Return means over photographs, by stage: effective rank of the map, which is the
    exponential of the entropy of its singular values' shares (Roy and Vetterli, 2007),
    and the cosine of horizontal neighbors."""
    ranks, cosines = [], []
    for maps in backbone.eval()(normalized(photos.pixels[:16])):
        shares = torch.linalg.svdvals(maps.flatten(2).double())
        shares = shares / shares.sum(-1, keepdim=True)
        entropy = -(shares * shares.clamp_min(1e-12).log()).sum(-1)
        ranks.append(round(float(entropy.exp().mean()), 2))
        cosine = cosine_similarity(maps[..., 1:], maps[..., :-1], dim=1)
        cosines.append(round(float(cosine.mean()), 3))
    return dict(rank=ranks, cosine=cosines)


class PretrainingStudy(Study):
    """Pretrainings, and trainings of models of places."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(args.out, dict(pretraining={}, places={}))
        self.imagenette: Path = args.imagenette
        self.squares: Any = None
        self.train, self.test = (
            read_cells(args.cells, part) for part in ('trainval', 'test')
        )

    def weights_of(self, name: str) -> dict[str, Tensor]:
        """Return weights of a backbone after its pretraining, which is done if it was
        not."""
        path = self.weights_folder / f'{name}.pth'
        if not path.exists():
            parts = ('train', 'val')
            if self.squares is None:
                self.squares = [read_squares(self.imagenette / part) for part in parts]
            began = time.process_time()
            backbone, top1 = pretrain(STARTS[name], *self.squares)
            if isinstance(backbone, MeanOfMap):
                backbone = backbone.backbone
            path.parent.mkdir(exist_ok=True)
            torch.save(backbone.state_dict(), path)
            self.results['pretraining'][name] = dict(
                top1=round(top1, 4), seconds=round(time.process_time() - began)
            )
            self.save()
            print(name, self.results['pretraining'][name], flush=True)
        return torch.load(path)

    def describe_maps(self, name: str) -> None:
        """Measure maps before and after the pretraining."""
        row = self.results['pretraining'][name]
        if 'after' not in row:
            weights = self.weights_of(name)
            for key, start in (('before', None), ('after', weights)):
                backbone = start_of(STARTS[name], start, 0)
                row[key] = measure_maps(backbone, self.test)
            self.save()
            print(name, row, flush=True)

    def loss(
        self, name: str, is_pretrained: bool, with_norms: bool, seed: int, rate: float
    ) -> tuple[float, float]:
        weights = self.weights_of(name) if is_pretrained else None
        backbone = start_of(STARTS[name], weights, seed)
        return fit(backbone, with_norms, seed, rate, self.train, self.test)

    def run(self, name: str, is_pretrained: bool, with_norms: bool, seed: int) -> None:
        """Train a model of places at its best rate."""
        key = f'{name}, {"pretrained" if is_pretrained else "from scratch"}'
        key += ', norms' if with_norms else ''
        row = self.results['places'].setdefault(key, dict(rates={}, seeds={}))
        if str(seed) in row['seeds']:
            return
        choice = name, is_pretrained, with_norms
        rate = self.tune(row['rates'], choice)
        loss, right = self.loss(*choice, seed, rate)
        row['seeds'][str(seed)] = dict(
            rate=rate, loss=round(loss, 4), right=round(right, 4)
        )
        self.save()
        print(key, seed, row['seeds'][str(seed)], flush=True)

    def tune(self, losses: dict[str, float], choice: tuple[str, bool, bool]) -> float:
        """Return the rate with the least loss."""

        def loss_at(rate: float) -> float:
            loss = round(self.loss(*choice, TUNING_SEED, rate)[0], 4)
            print(*choice, rate, loss, flush=True)
            return loss

        return tune(losses, loss_at, self.save, RATES, MOST_RATES, digits=4)


def main(argv: Any = None) -> None:
    parser = study_parser(__doc__)
    parser.add_argument('--imagenette', type=Path, required=True, metavar='DIR')
    parser.add_argument('--cells', type=Path, required=True, metavar='DIR')
    parser.add_argument('--starts', nargs='+', choices=STARTS, default=[*STARTS])
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    study = PretrainingStudy(args)
    for name in args.starts:
        study.weights_of(name)
        study.describe_maps(name)
        for seed in range(args.seeds):
            study.run(name, True, False, seed)
            # without pretraining they are the model with a class token
            if not name.startswith(('shuffled labels', 'mean of tokens')):
                study.run(name, False, False, seed)
            if name.startswith('class token'):
                study.run(name, True, True, seed)
                study.run(name, False, True, seed)


if __name__ == '__main__':
    main()
