"""Trains small classifiers: a backbone of the project, a linear head, a plain loop."""

import math

import torch
from rich.progress import track
from side_by_side.models import initialized
from torch import nn
from torch.nn.functional import cross_entropy
from torchvision import transforms

from mmlinattn.registry import build_model
from mmlinattn.utils.files import whole_file

from .data import key_of

MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)
# The recipe of the papers' ImageNet trainings (AdamW, cosine, warm-up, lr 1e-3,
# weight decay 0.05, random crops, here a quarter of the image or more) without what
# needs hundreds of epochs: mixup, cutmix, erasing.
RECIPE = dict(
    side=64,
    batch=32,
    steps=800,
    lr=1e-3,
    weight_decay=0.05,
    warmup=0.1,
    crop=[0.25, 1.0],
)
# For Swins and ViTs, which learn hardly anything in 800 steps of the above: plain
# images of large shapes, cut off by no crop.
EASY_SHAPES = dict(texture=0.0, clutter=0.0, scale=[0.4, 0.6])
EASY_RECIPE = dict(RECIPE, crop=[0.6, 1.0])


class Classifier(nn.Module):
    """A backbone, from its config, and a linear layer on its mean features or class
    token."""

    def __init__(self, backbone, num_classes):
        super().__init__()
        self.backbone = initialized(build_model(backbone))
        self.head = nn.Linear(self.backbone.feature_channels[-1], num_classes)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, images):
        """(B, 3, H, W) uint8 to (B, classes)."""
        out = self.backbone(normalized(images))[-1]
        return self.head(out.mean((2, 3)) if out.dim() == 4 else out)


def normalized(images):
    """(B, 3, H, W) uint8 as float32 with ImageNet's statistics."""
    mean, std = (images.new_tensor(x, dtype=torch.float32) for x in (MEAN, STD))
    return (images.float() - mean[:, None, None]) / std[:, None, None]


def trained(backbone, context):
    """A classifier trained as the settings' recipe says, or the same from the disk.

    Args:
        backbone (dict): Config.
        context (Context): ``settings['recipe']`` is the recipe.

    Returns:
        Classifier: In eval mode.
    """
    recipe = context.settings['recipe']
    where = context.device.type, torch.__version__, torch.get_num_threads()
    key = key_of([backbone, recipe, context.seed, *where, context.data.describe()])
    path = context.work_dir / 'weights' / f'{key}.pth'
    torch.manual_seed(context.seed)
    model = Classifier(backbone, context.data.num_classes()).to(context.device)
    if path.is_file():
        model.load_state_dict(torch.load(path, weights_only=True))
    else:
        train(model, recipe, context)
        with whole_file(path) as draft:
            torch.save(model.state_dict(), draft)
    return model.eval()


def train(model, recipe, context):
    """Trains a model; see :data:`RECIPE`."""
    images, labels = context.data.labeled('train')
    decayed = [x for x in model.parameters() if x.dim() > 1]
    others = [x for x in model.parameters() if x.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [dict(params=decayed), dict(params=others, weight_decay=0.0)],
        lr=recipe['lr'],
        weight_decay=recipe['weight_decay'],
    )
    steps = recipe['steps']
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: factor(step, steps, recipe['warmup'])
    )
    crop = transforms.RandomResizedCrop(recipe['side'], recipe['crop'], antialias=True)
    augment = transforms.Compose([crop, transforms.RandomHorizontalFlip()])
    generator = torch.Generator().manual_seed(context.seed)
    torch.manual_seed(context.seed + 1)  # of dropout, the same for every model
    model.train()
    order = torch.empty(0, dtype=torch.long)
    for step in track(range(steps), description='steps'):
        while len(order) < recipe['batch']:
            order = torch.cat([order, torch.randperm(len(images), generator=generator)])
        index, order = order[: recipe['batch']], order[recipe['batch'] :]
        # the same crops for every model, however many random numbers that takes
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(context.seed * steps + step)
            batch = torch.stack([augment(x) for x in images[index]])
        batch = batch.to(context.device)
        loss = cross_entropy(model(batch), labels[index].to(context.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()


def factor(step, steps, warmup):
    """Of the learning rate: linear warm-up, then half a cosine."""
    first = max(round(warmup * steps), 1)
    if step < first:
        return (step + 1) / first
    return 0.5 * (1 + math.cos(math.pi * (step - first) / max(steps - first, 1)))


@torch.no_grad()
def accuracy(model, context, side, batch=50):
    """Share of held-back images of a side in pixels that are classified right."""
    images, labels = context.data.resized('val', side)
    torch.manual_seed(0)  # of samplers that draw landmarks
    right = 0
    for part, target in zip(images.split(batch), labels.split(batch)):
        logits = model(part.to(context.device))
        right += int((logits.argmax(-1).cpu() == target).sum())
    return right / len(labels)
