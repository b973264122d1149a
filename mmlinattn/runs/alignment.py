"""Runs of the stages of an adaptation: their screen, their errors, their plot."""

import logging
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mmengine.config import Config, ConfigDict
from mmengine.hooks import Hook
from mmengine.registry import DefaultScope
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from torch import nn

from mmlinattn.cli.figures import save
from mmlinattn.cli.run_arguments import run_options
from mmlinattn.engine import find_checkpoint
from mmlinattn.engine.preflight import build_model
from mmlinattn.utils.log import quiet

from . import training
from .preparation import loader_in_process

LOSS = 'train/loss_'  # how histories of the log begin
WIDE = 8  # errors in a line of the screen; of more, the first and the last ones
# by label of a block or number of a map
Errors = dict[str, float]


class Stage(NamedTuple):
    """A stage of an adaptation.

    Attributes:
        name (str): 'attention' or 'features'.
        config (Path): The config that runs it.
        work_dir (Path): Its folder.
        epochs (int): Its length.
    """

    name: str
    config: Path
    work_dir: Path
    epochs: int

    def last(self) -> Optional[str]:
        """Return the last checkpoint in its folder."""
        return find_checkpoint(str(self.work_dir))

    def is_done(self) -> bool:
        """Return whether its last epoch has a checkpoint."""
        match = re.fullmatch(r'epoch_(\d+)\.pth', Path(self.last() or '').name)
        return bool(match) and int(match[1]) >= self.epochs  # type: ignore[index]


def run_stage(stage: Stage, resume: bool, amp: bool = False) -> list[Errors]:
    """Train a stage, with a line an epoch on the screen, and return the errors of each
    of its epochs, those before it was resumed included.

    Raises:
        Those of :func:`mmlinattn.runs.train`.
    """
    args = run_options(
        stage.config,
        stage.work_dir,
        None,
        amp=amp,
        resume='auto' if resume and stage.last() else None,
        auto_scale_lr=False,
        allow_mismatch=False,
        trust=False,
        no_preflight=False,
        check_photos=False,
        launcher='none',
    )
    cfg, comparison = training.prepare(args)
    lines = EpochLines(stage.name)
    try:
        training.run(cfg, comparison, args, [lines])
    finally:
        lines.end_bar()  # it hides the cursor
    return lines.errors


class EpochLines(Hook):
    """Shows the progress of an epoch, and a line of its errors at its end. The log is
    in its file alone, but for errors.

    Args:
        name (str): Of the stage.

    Attributes:
        errors (list[dict]): Means of each epoch, by block or map.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.errors: list[Errors] = []
        self.bar: Optional[Progress] = None
        self.task = TaskID(0)

    def before_run(self, runner: Any) -> None:
        """Leave the screen to these lines."""
        for handler in runner.logger.handlers:
            if not isinstance(handler, logging.FileHandler):
                handler.setLevel(logging.ERROR)

    def before_train_epoch(self, runner: Any) -> None:
        """Begin a bar, if somebody sees it."""
        console = Console(stderr=True)
        if not console.is_terminal:
            return
        columns = TextColumn('{task.description}'), BarColumn(), TimeRemainingColumn()
        self.bar = Progress(*columns, console=console, transient=True)
        loop = runner.train_loop
        text = f'{self.name}, epoch {loop.epoch + 1} of {loop.max_epochs}'
        self.task = self.bar.add_task(text, total=len(loop.dataloader))
        self.bar.start()

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Move the bar."""
        if self.bar is not None:
            self.bar.advance(self.task)

    def after_train_epoch(self, runner: Any) -> None:
        """Print the errors of the epoch."""
        self.end_bar()
        loop = runner.train_loop
        self.errors = errors_by_epoch(runner.message_hub, len(loop.dataloader))
        shown = describe(self.errors[-1])
        print(f'{self.name}, epoch {loop.epoch + 1} of {loop.max_epochs}: {shown}')
        sys.stdout.flush()

    def end_bar(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def errors_by_epoch(message_hub: Any, length: int) -> list[Errors]:
    """Return the mean errors of each epoch of ``length`` iterations, from the history
    of the log, which forgets the first of very many."""
    histories = {}
    for name, history in message_hub.log_scalars.items():
        values = history.data[0]
        if name.startswith(LOSS):
            whole = values[len(values) % length :].reshape(-1, length)
            histories[name[len(LOSS) :]] = whole.mean(1)
    columns = histories.items()
    number = len(next(iter(histories.values()), ()))
    return [{key: float(x[i]) for key, x in columns} for i in range(number)]


def describe(errors: Mapping[str, float]) -> str:
    """Return errors in words: all of a few, or the first and the last ones."""
    cells = [f'{key} {value:.4f}' for key, value in errors.items()]
    if len(cells) > WIDE:
        half = WIDE // 2
        cells = [*cells[:half], '...', *cells[-half:]]
    mean = sum(errors.values()) / max(len(errors), 1)
    return f'mean error {mean:.4f} ({", ".join(cells)})'


@torch.no_grad()
def measure(model: nn.Module, loader: Any) -> Errors:
    """Return the mean errors of an alignment's student on photos."""
    model.eval()
    total: Errors = {}
    count = 0
    for batch in loader:
        images = model.data_preprocessor(batch)['inputs']
        for key, error in model.errors(images).items():
            total[key] = total.get(key, 0.0) + float(error) * len(images)
        count += len(images)
    return {key: error / count for key, error in total.items()}


def alignment_of(cfg: Config, device: str) -> Any:
    """Return the model of a stage's config on a device, with its initial weights."""
    torch.manual_seed(cfg.randomness.seed)
    model: Any = build_model(cfg)
    with quiet():
        model.init_weights()
    return model.to(device)


def photos_in_order(cfg: Config, ann_file: str, size: int) -> Any:
    """Return batches of the middles of photos, for :func:`measure`."""
    steps = [
        dict(type='LoadImageFromFile'),
        dict(type='ResizeEdge', scale=size * 8 // 7, edge='short'),
        dict(type='CenterCrop', crop_size=size),
        dict(type='PackInputs'),
    ]
    loader = ConfigDict(
        batch_size=min(cfg.train_dataloader.batch_size, 8),
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dict(cfg.train_dataloader.dataset, ann_file=ann_file, pipeline=steps),
    )
    with DefaultScope.overwrite_default_scope(cfg.default_scope), quiet():
        return loader_in_process(loader)


def draw(stages: Mapping[str, Sequence[Errors]], out: Path) -> None:
    """Draw the errors of each epoch, a plot for each stage and a line for each block or
    map."""
    shown = {name: errors for name, errors in stages.items() if errors}
    figure = Figure((5 * max(len(shown), 1), 3.5), layout='constrained')
    grid = figure.subplots(1, max(len(shown), 1), squeeze=False)[0]
    for axes, (name, errors) in zip(grid, shown.items()):
        keys = [*errors[0]]
        for i, key in enumerate(keys):
            # from the first block, dark, to the last one
            color = colormaps['viridis'](0.9 * i / max(len(keys) - 1, 1))
            values = [epoch[key] for epoch in errors]
            places = range(1, len(values) + 1)
            axes.plot(places, values, marker='.', color=color, label=key)
        axes.set_yscale('log')
        axes.set_title(f'{name}: error of training photos')
        axes.set_xlabel('epoch')
        axes.grid(alpha=0.3)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        kind = 'block' if name == 'attention' else 'map'
        axes.legend(title=kind, fontsize='x-small', ncols=1 + len(keys) // 12)
    save(figure, out)
