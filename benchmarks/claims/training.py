"""Trains small models, each once: a run that was killed goes on where it was, what is
finished is kept, and processes side by side take other runs."""

import math
import sys
import time
from typing import Any, NamedTuple, Optional

import torch
from filelock import FileLock
from mmengine import load, track_iter_progress
from side_by_side.report import write_json
from torch import nn

from mmlinattn.utils.files import whole_file
from mmlinattn.weights.start import is_scaling_vector

from .data import key_of

SAVE_EVERY = 120  # seconds


class Run(NamedTuple):
    """One training of a model, from its backbone's config, with :data:`~.plan.RECIPE`.

    The seed is that of weights and of the order of photos. Of the splits, 'tune' is
    tested on 'check', 'train' on 'val'. Weights are those that ``start`` ends with: all
    of them, or, for another task, those of the backbone; scaling vectors that it did
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
    def has_rate(self):
        """Whether the runs that tune its rate, and those of its start, are finished."""
        rates = self.start is None or self.start.has_rate
        return rates and self.recipe['lr'] is not None

    def with_recipe(self, **changes):
        return self._replace(recipe=dict(self.recipe, **changes))

    def folder(self, work_dir):
        """Of what is kept of it."""
        words = [self.data, *self.name.split(), self.split, f'seed{self.seed}']
        return work_dir / 'runs' / f'{"_".join(words)}_{self.key}'

    def result(self, work_dir):
        """What came out, None before it is finished."""
        file = self.folder(work_dir) / 'result.json'
        return load(file) if file.is_file() else None


def trained(run, tasks, work_dir, device, timeout=-1):
    """The model of a run in eval mode, trained now if it is not in ``work_dir``.

    ``tasks`` are those of its data, and of the run that it starts from. Raises
    :class:`filelock.Timeout` if another process trains it for more seconds than
    ``timeout``; with -1, it waits for as long as that takes.
    """
    folder, task = run.folder(work_dir), tasks[run.data]
    torch.manual_seed(run.seed)
    model = task.build(run)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / 'lock', timeout):
        if run.result(work_dir) is None:
            if run.start is not None:
                begin(model, run, trained(run.start, tasks, work_dir, 'cpu'))
            finish(model.to(device), run, task, folder)
    weights = torch.load(folder / 'weights.pth', 'cpu', weights_only=True)
    model.load_state_dict(weights)
    return model.to(device).eval()


def finish(model, run, task, folder):
    """Trains the model of a run and keeps what comes out."""
    seconds = train(model, run, task, folder)
    split = 'val' if run.split == 'train' else 'check'
    scores = task.score(model.eval(), split, run.recipe['side'])
    with whole_file(folder / 'weights.pth') as draft:
        torch.save(model.state_dict(), draft)
    result = dict(
        run._replace(start=run.start and run.start.key)._asdict(),
        files=task.key,
        **scores,
        seconds=round(seconds),
        torch=torch.__version__,
    )
    write_json(folder / 'result.json', result)
    line = f'{folder.name}: {scores["score"]:.4f}, {result["seconds"]} s'
    print(f'{time.strftime("%F %T")} {line}', flush=True)
    (folder / 'state.pth').unlink(missing_ok=True)


def begin(model, run, source):
    """Gives a model the weights of another one, ValueError if it does not fit."""
    if run.data != run.start.data:
        model, source = model.backbone, source.backbone
    missing, unknown = model.load_state_dict(source.state_dict(), strict=False)
    # maps that the classifier does not return have norms of their own
    known = (is_scaling_vector(x) or x.startswith('norm') for x in missing)
    if unknown or not all(known):
        raise ValueError(f'{run.name} does not go on from {run.start.name}')


def train(model, run, task, folder):
    """Trains a model, from the last state in the folder on if there is one.

    What is random depends on the seed and the number of the step only, so that a run
    that was killed gives the same weights as another. Returns seconds of the processor.
    """
    recipe, device = run.recipe, next(model.parameters()).device
    arrays = task.arrays(run.split, recipe['kept'])
    groups = [
        dict(params=[], weight_decay=recipe['weight_decay']),
        dict(params=[]),
        dict(params=[], times=recipe.get('scaling_lr', 1)),
    ]
    for name, param in model.named_parameters():
        group = 2 if is_scaling_vector(name) else int(param.dim() < 2)
        groups[group]['params'].append(param)
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
    num, batch = len(arrays[0]), recipe['batch']
    per_epoch = num // batch
    steps = max(round(recipe['epochs'] * per_epoch), 1)
    first, seconds, path = 0, 0.0, folder / 'state.pth'
    if path.is_file():
        state = torch.load(path, device, weights_only=True)
        model.load_state_dict(state['model'])
        optimizer.load_state_dict(state['optimizer'])
        first, seconds = state['step'], state['seconds']
    start, saved = time.process_time(), time.monotonic()
    model.train()
    bar = track_iter_progress if sys.stdout.isatty() else iter
    for step in bar(range(first, steps)):
        if time.monotonic() - saved > SAVE_EVERY:
            content = dict(model=model.state_dict(), optimizer=optimizer.state_dict())
            content.update(step=step, seconds=seconds + time.process_time() - start)
            with whole_file(path) as draft:
                torch.save(content, draft)
            saved = time.monotonic()
        for group in optimizer.param_groups:
            rate = recipe['lr'] * factor(step, steps, recipe['warmup'])
            group['lr'] = rate * group.get('times', 1)
        epoch, place = divmod(step, per_epoch)
        order = torch.Generator().manual_seed(1000 * run.seed + epoch)
        order = torch.randperm(num, generator=order)
        index = order[place * batch : (place + 1) * batch].sort().values.numpy()
        draws = torch.Generator().manual_seed(10**6 * (run.seed + 1) + step)
        torch.manual_seed(10**6 * (run.seed + 1) + step)  # of what the model draws
        loss = task.loss(model, run, arrays, index, draws)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return seconds + time.process_time() - start


def factor(step, steps, warmup):
    """Of the learning rate: linear warm-up, then half a cosine."""
    first = max(round(warmup * steps), 1)
    if step < first:
        return (step + 1) / first
    return 0.5 * (1 + math.cos(math.pi * (step - first) / max(steps - first, 1)))
