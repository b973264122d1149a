"""Two hundred steps of a detector with masks in bfloat16, and nothing NaN.

It needs no mmdet: an FPN of plain convolutions, and heads that predict classes, boxes
and a mask at every position of every level, with dense losses. Neck, heads and
targets have the sizes of Mask R-CNN's first stage and mask branch; there is no RoI.

Legend: B batch, (H, W) map of a level.
"""

import math
import time
from functools import partial

import torch
from torch import nn
from torch.nn import functional as nnf

from ..cases import natural_map
from ..models import backbone
from ..timing import autocast, synchronize
from .unit import Settings, Unit

MODELS = {
    'SOFT++-T': dict(type='SOFTPlusPlus', arch='tiny', drop_path_rate=0.1),
    'SOFT-T': dict(type='SOFT', arch='tiny', drop_path_rate=0.1),
    'Swin-T with ELFATT': dict(
        type='SwinTransformer', arch='tiny', attention='elfatt', drop_path_rate=0.1
    ),
}
CLASSES = 80
MASK_SIDE = 28
OBJECTS = 10


class DenseDetector(nn.Module):
    """A backbone, an FPN of five levels and three dense heads.

    Args:
        model (nn.Module): The backbone, with ``feature_channels``.
        channels (int): Channels of the FPN.
    """

    def __init__(self, model, channels=256):
        super().__init__()
        self.backbone = model
        self.laterals = nn.ModuleList(
            nn.Conv2d(dims, channels, 1) for dims in model.feature_channels
        )
        self.outs = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=1) for _ in self.laterals
        )
        self.tower = nn.Sequential(
            *(
                layer
                for _ in range(4)
                for layer in (nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU())
            )
        )
        self.classes = nn.Conv2d(channels, CLASSES, 3, padding=1)
        self.boxes = nn.Conv2d(channels, 4, 3, padding=1)
        self.masks = nn.Conv2d(channels, 1, 3, padding=1)
        # RetinaNet's start: objects are rare
        nn.init.constant_(self.classes.bias, -math.log(99))

    def forward(self, images):
        """Maps of classes, boxes and masks for every level, each (B, C, H, W)."""
        maps = [conv(x) for conv, x in zip(self.laterals, self.backbone(images))]
        for i in range(len(maps) - 1, 0, -1):
            size = maps[i - 1].shape[2:]
            maps[i - 1] = maps[i - 1] + nnf.interpolate(maps[i], size=size)
        maps = [conv(x) for conv, x in zip(self.outs, maps)]
        maps.append(nnf.max_pool2d(maps[-1], 1, 2))
        towers = [self.tower(x) for x in maps]
        return [(self.classes(x), self.boxes(x), self.masks(x)) for x in towers]


def scene(shape, seed):
    """Smooth images with rectangles of one color a class, and where they are.

    Args:
        shape (tuple[int]): (B, 3, H, W).
        seed (int): Of positions and classes.

    Returns:
        tuple[Tensor]: Images, boxes (B, OBJECTS, 4) as x1, y1, x2, y2 in pixels,
        classes (B, OBJECTS).
    """
    generator = torch.Generator().manual_seed(seed)
    images = natural_map(shape)
    size = torch.tensor([shape[3], shape[2]])
    corners = torch.rand(shape[0], OBJECTS, 2, generator=generator) * 0.8 * size
    sides = (0.05 + 0.35 * torch.rand(shape[0], OBJECTS, 2, generator=generator)) * size
    boxes = torch.cat((corners, torch.minimum(corners + sides, size)), -1)
    classes = torch.randint(CLASSES, (shape[0], OBJECTS), generator=generator)
    colors = torch.randn(CLASSES, 3, generator=torch.Generator().manual_seed(0))
    for image, of_image, labels in zip(images, boxes.long().tolist(), classes):
        for (x1, y1, x2, y2), label in zip(of_image, labels):
            image[:, y1 : y2 + 1, x1 : x2 + 1] = 2 * colors[label][:, None, None]
    return images, boxes, classes


def targets(level, image_shape, boxes, classes):
    """What each position of a level is to say.

    The smallest box around a position is its own.

    Args:
        level (tuple[int]): (H, W).
        image_shape (tuple[int]): Of the images in pixels.
        boxes (Tensor): (B, K, 4).
        classes (Tensor): (B, K).

    Returns:
        tuple[Tensor]: One-hot classes (B, CLASSES, H, W), distances to the box's
        sides over its image's (B, 4, H, W), and where there is any (B, 1, H, W).
    """
    scale = torch.tensor(image_shape, device=boxes.device)
    y, x = ((torch.arange(n, device=boxes.device) + 0.5) / n for n in level)
    x1, y1, x2, y2 = (boxes / scale.flip(0).repeat(2)).unbind(-1)
    x, y = x.view(1, 1, 1, -1), y.view(1, 1, -1, 1)
    sides = torch.stack(
        torch.broadcast_tensors(
            *(
                distance
                for line, near, far in ((x, x1, x2), (y, y1, y2))
                for distance in (
                    line - near[..., None, None],
                    far[..., None, None] - line,
                )
            )
        ),
        2,
    )  # (B, K, 4, H, W)
    inside = sides.amin(2) > 0
    area = ((x2 - x1) * (y2 - y1))[..., None, None]
    area = area.expand_as(inside).masked_fill(~inside, float('inf'))
    own = area.argmin(1, keepdim=True)
    found = inside.any(1, keepdim=True)
    one_hot = nnf.one_hot(classes, CLASSES).float()  # (B, K, CLASSES)
    chosen = nnf.one_hot(own.squeeze(1), boxes.size(1)).float()  # (B, H, W, K)
    labels = (chosen @ one_hot.unsqueeze(1)).movedim(-1, 1) * found
    sides = sides.gather(1, own.unsqueeze(2).expand(-1, -1, 4, -1, -1)).squeeze(1)
    return labels, sides.clamp(min=0), found.float()


def losses(outs, image_shape, boxes, classes):
    """Focal loss of classes, L1 of boxes, cross-entropy of masks; one scalar."""
    total = 0
    for scores, sides, mask in outs:
        labels, wanted, found = targets(scores.shape[2:], image_shape, boxes, classes)
        scores, sides, mask = scores.float(), sides.float(), mask.float()
        entropy = nnf.binary_cross_entropy_with_logits(scores, labels, reduction='none')
        wrong = (scores.sigmoid() - labels).abs()
        alpha = 0.25 * labels + 0.75 * (1 - labels)
        count = found.sum().clamp(min=1)
        total = total + (alpha * wrong.square() * entropy).sum() / count
        total = total + ((sides - wanted).abs() * found).sum() / count
        pooled = [nnf.adaptive_avg_pool2d(x, MASK_SIDE) for x in (mask, found)]
        total = total + nnf.binary_cross_entropy_with_logits(*pooled)
    return total


def units(settings: Settings):
    """A unit for every backbone."""
    return [
        Unit(f'{name}, bfloat16', partial(train, name, cfg, settings))
        for name, cfg in MODELS.items()
    ]


def train(name, cfg, settings: Settings):
    """Trains on a few scenes in turn.

    Returns:
        list[dict]: One row: the steps, how many had a loss or gradient that is not
        finite, the first and last losses (means of ten steps), the largest norm of
        the gradient, and seconds and memory of a step.
    """
    device, dtype = settings.device, torch.bfloat16
    shape = settings.pick((2, 3, 800, 1344), (2, 3, 64, 96))
    steps = settings.pick(200, 4)
    torch.manual_seed(0)
    channels = settings.pick(256, 16)
    model = DenseDetector(backbone(**cfg)(), channels).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
    scenes = [
        [x.to(device) for x in scene(shape, seed)]
        for seed in range(settings.pick(8, 2))
    ]
    history, norms = [], []
    if device.type == 'cuda':
        torch.cuda.reset_peak_memory_stats(device)
    start = None
    for i in range(steps):
        if i == steps // 10:  # compiled and chosen by then
            synchronize(device)
            start = time.perf_counter()
        images, boxes, classes = scenes[i % len(scenes)]
        with autocast(device, dtype):
            outs = model(images)
        loss = losses(outs, shape[2:], boxes, classes)
        loss.backward()
        # the norm alone: nothing is clipped, nothing is hidden
        norms.append(
            torch.stack(
                [p.grad.norm() for p in model.parameters() if p.grad is not None]
            )
            .norm()
            .detach()
        )
        history.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
    synchronize(device)
    seconds = (time.perf_counter() - start) / (steps - steps // 10)
    history, norms = torch.stack(history).cpu(), torch.stack(norms).cpu()
    finite = history.isfinite() & norms.isfinite()
    few = min(10, steps // 2)
    row = dict(
        model=name,
        dtype='bfloat16',
        shape=list(shape),
        steps=steps,
        not_finite=int((~finite).sum()),
        first_loss=float(history[:few].mean()),
        last_loss=float(history[-few:].mean()),
        largest_gradient=float(norms.max()),
        seconds=seconds,
        bytes=torch.cuda.max_memory_allocated(device)
        if device.type == 'cuda'
        else None,
    )
    if row['not_finite']:
        row['problem'] = f'{row["not_finite"]} of {steps} steps are not finite'
    elif steps >= 100 and row['last_loss'] >= row['first_loss']:
        row['problem'] = 'the loss does not fall'
    return [row]


def headline(rows):
    return '; '.join(
        f'{row["model"]}: {row["steps"]} steps, {row["not_finite"]} not finite, loss '
        f'{row["first_loss"]:.3g} to {row["last_loss"]:.3g}'
        for row in rows
    )
