"""Trains small classifiers, each once: a run that was killed goes on where it was, and
what is finished is kept."""

import json
import math
import time
from typing import Any, NamedTuple, Optional

import numpy as np
import torch
from side_by_side.models import initialized
from torch import nn
from torch.nn.functional import cross_entropy

from mmlinattn.registry import build_model
from mmlinattn.utils.files import whole_file
from mmlinattn.weights.start import is_scaling_vector

from .data import key_of, random_crops

MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)
SAVE_EVERY = 120  # seconds
CURVE = 50  # steps whose mean loss is a point of the curve


class Run(NamedTuple):
    """One training.

    Attributes:
        name (str): Of the model.
        data (str): Of the photos.
        backbone (dict): Config.
        recipe (dict): See :data:`~.plan.RECIPE`.
        seed (int): Of weights and of the order of the photos.
        split (str): What it learns from; 'tune' is tested on 'check', 'train' on 'val'.
        start (Run, optional): Where its weights are from. Scaling vectors that it did
            not have start at 0.
    """

    name: str
    data: str
    backbone: dict[str, Any]
    recipe: dict[str, Any]
    seed: int = 0
    split: str = 'train'
    start: Optional['Run'] = None

    @property
    def key(self):
        fields = self._replace(start=self.start and self.start.key)
        return key_of(fields._asdict())

    @property
    def label(self):
        text = f'{self.data}, {self.name}, seed {self.seed}'
        if self.split == 'tune':
            text += f', tunes the rate {self.recipe["lr"]:g}'
        return text

    def folder(self, work_dir):
        """Of what is kept of it."""
        words = [self.data, *self.name.split(), self.split, f'seed{self.seed}']
        return work_dir / 'runs' / f'{"_".join(words)}_{self.key}'

    def result(self, work_dir):
        """What came out, None before it is finished."""
        file = self.folder(work_dir) / 'result.json'
        return json.loads(file.read_text('utf-8')) if file.is_file() else None


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
        """(B, 3, H, W), 0 to 255, to (B, classes)."""
        out = self.backbone(normalized(images))[-1]
        return self.head(out.mean((2, 3)) if out.dim() == 4 else out)


def normalized(images):
    """(B, 3, H, W), 0 to 255, as float32 with ImageNet's statistics."""
    mean, std = (images.new_tensor(x, dtype=torch.float32) for x in (MEAN, STD))
    return (images.float() - mean[:, None, None]) / std[:, None, None]


def trained(run, photos, work_dir, device):
    """The model of a run, trained now if it is not on the disk.

    Args:
        run (Run): The run.
        photos (Photos): Of its data.
        work_dir (Path): Where runs are kept.
        device (torch.device): Where to run.

    Returns:
        Classifier: In eval mode.
    """
    folder = run.folder(work_dir)
    pixels, labels = photos.labeled(run.split, run.recipe['kept'])
    torch.manual_seed(run.seed)
    model = Classifier(run.backbone, int(labels.max()) + 1)
    if run.result(work_dir) is None:
        if run.start is not None:
            source = trained(run.start, photos, work_dir, 'cpu').state_dict()
            missing, unknown = model.load_state_dict(source, strict=False)
            if unknown or not all(map(is_scaling_vector, missing)):
                raise ValueError(f'{run.name} does not go on from {run.start.name}')
        model.to(device)
        losses, seconds = train(model, run, pixels, labels, folder)
        split = 'val' if run.split == 'train' else 'check'
        right = predictions(model.eval(), photos, split, run.recipe['side'])
        with whole_file(folder / 'weights.pth') as draft:
            torch.save(model.state_dict(), draft)
        result = dict(
            run._replace(start=run.start and run.start.key)._asdict(),
            photos=photos.key,
            accuracy=float(right.mean()),
            right=np.packbits(right).tobytes().hex(),
            losses=losses,
            seconds=round(seconds),
            torch=torch.__version__,
        )
        with whole_file(folder / 'result.json') as draft:
            draft.write_text(json.dumps(result), 'utf-8')
        (folder / 'state.pth').unlink(missing_ok=True)
    weights = torch.load(folder / 'weights.pth', 'cpu', weights_only=True)
    model.load_state_dict(weights)
    return model.to(device).eval()


def train(model, run, pixels, labels, folder):
    """Trains a model, from the last state in the folder on if there is one.

    What is random depends on the seed and the number of the step only, so that a run
    that was killed gives the same weights as another.

    Returns:
        tuple[list[float], float]: Mean losses of :data:`CURVE` steps each, and seconds
        of the processor.
    """
    recipe, device = run.recipe, next(model.parameters()).device
    scaling = [x for name, x in model.named_parameters() if is_scaling_vector(name)]
    decayed = [x for x in model.parameters() if x.dim() > 1]
    taken = {id(x) for x in [*scaling, *decayed]}
    others = [x for x in model.parameters() if id(x) not in taken]
    groups = [
        dict(params=decayed, weight_decay=recipe['weight_decay']),
        dict(params=others),
        dict(params=scaling, times=recipe.get('scaling_lr', 1)),
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
    per_epoch = len(labels) // recipe['batch']
    steps = max(round(recipe['epochs'] * per_epoch), 1)
    first, losses, seconds, path = 0, [], 0.0, folder / 'state.pth'
    if path.is_file():
        state = torch.load(path, device, weights_only=True)
        model.load_state_dict(state['model'])
        optimizer.load_state_dict(state['optimizer'])
        first, losses, seconds = state['step'], state['losses'], state['seconds']
    start, saved = time.process_time(), time.monotonic()
    model.train()
    for step in range(first, steps):
        if time.monotonic() - saved > SAVE_EVERY:
            content = dict(model=model.state_dict(), optimizer=optimizer.state_dict())
            content.update(step=step, losses=losses)
            content.update(seconds=seconds + time.process_time() - start)
            with whole_file(path) as draft:
                torch.save(content, draft)
            saved = time.monotonic()
        for group in optimizer.param_groups:
            rate = recipe['lr'] * factor(step, steps, recipe['warmup'])
            group['lr'] = rate * group.get('times', 1)
        epoch, place = divmod(step, per_epoch)
        order = torch.Generator().manual_seed(1000 * run.seed + epoch)
        batch = slice(place * recipe['batch'], (place + 1) * recipe['batch'])
        index = torch.randperm(len(labels), generator=order)[batch].sort().values
        crops = torch.Generator().manual_seed(10**6 * (run.seed + 1) + step)
        images = random_crops(
            pixels[index.numpy()], recipe['side'], recipe['crop'], crops
        )
        torch.manual_seed(10**6 * (run.seed + 1) + step)  # of what the model draws
        loss = cross_entropy(
            model(images.to(device)),
            labels[index].to(device),
            label_smoothing=recipe['smoothing'],
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % CURVE == 0:
            losses.append(0.0)
        losses[-1] += loss.item() / min(CURVE, steps - step + step % CURVE)
    return losses, seconds + time.process_time() - start


def factor(step, steps, warmup):
    """Of the learning rate: linear warm-up, then half a cosine."""
    first = max(round(warmup * steps), 1)
    if step < first:
        return (step + 1) / first
    return 0.5 * (1 + math.cos(math.pi * (step - first) / max(steps - first, 1)))


@torch.no_grad()
def predictions(model, photos, split, side, batch=50):
    """Whether each photo of a split is classified right, at a side in pixels.

    Returns:
        np.ndarray: (N,) bool.
    """
    device = next(model.parameters()).device
    pixels, labels = photos.labeled(split, side)
    right = []
    for i in range(0, len(labels), batch):
        part = torch.from_numpy(pixels[i : i + batch].copy()).permute(0, 3, 1, 2)
        found = model(part.to(device)).argmax(-1).cpu()
        right.append(found == labels[i : i + batch])
    return torch.cat(right).numpy()
