"""The screen of a run: few lines before it, and a summary behind it."""

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mmengine.config import Config
from mmengine.runner import Runner

from mmlinattn.cli import program
from mmlinattn.cli.figures import save

LINES = 25  # of warnings before the first iteration
# MMEngine's last lines before a test and before a training, and those of iterations
BEGIN = re.compile(
    r'Load checkpoint from|Checkpoints will be saved|(Epoch|Iter)\((train|val|test)\)'
)
# entries of validations that are no score of the whole data set
NO_SCORE = re.compile('step|epoch|.*time|memory|.*_(precision|s|m|l)|.*classwise')
# scores that MMSegmentation and MMPretrain give in percent
PERCENT = re.compile(
    '(.*/)?([am]Acc|m(IoU|Dice|Fscore|Precision|Recall))|'
    '(.*/)?(accuracy|single-label|multi-label)/.*'
)


class Brief:
    """A stream for a log on the screen: until a run begins, a line of each warning,
    and then everything. The log file has all lines."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.left = stream, LINES

    def write(self, text: str) -> int:
        """Write an entry of the log, or none of it, and return its length."""
        if BEGIN.search(text):
            self.left = -1
        if self.left >= 0 and 'ERROR' not in text:
            if self.left == 0 or 'WARNING' not in text:
                return len(text)
            self.left -= 1
            first, _, rest = text.strip().partition('\n')
            text = f'{first[:400]}{" ..." if rest or first[400:] else ""}\n'
        return self.stream.write(text)

    def flush(self) -> None:
        """Flush the screen."""
        self.stream.flush()


def draw_curves(runner: Runner, out: Path) -> None:
    """Draw the loss of each iteration and the scores of each validation, from 0 to 1,
    which a resumed run has from its beginning."""
    figure = Figure((9, 3.5), layout='constrained')
    axes = dict(zip(('train', 'val'), figure.subplots(1, 2)))
    for kind, name in dict(train='iteration', val='validation').items():
        axes[kind].set_xlabel(name)
        axes[kind].xaxis.set_major_locator(MaxNLocator(integer=True))
    for name, history in runner.message_hub.log_scalars.items():
        kind, _, label = name.partition('/')
        if name == 'train/loss' or (kind == 'val' and not NO_SCORE.fullmatch(label)):
            values = [as_share(label, x) for x in history.data[0]]
            marker = '.' if kind == 'val' else ''  # a single validation is no line
            places = range(1, len(values) + 1)
            axes[kind].plot(places, values, marker=marker, label=label)
            axes[kind].legend(fontsize='small')
    save(figure, out)


def best_of(runner: Runner) -> tuple[str, str]:
    """Return the checkpoint to go on with, and its score in words."""
    runtime_info: dict[str, Any] = runner.message_hub.runtime_info
    for key, path in runtime_info.items():
        if key.startswith('best_ckpt') and path and os.path.isfile(path):
            name = key[len('best_ckpt_') :] or name_of_score(runner)
            score = as_share(name, runtime_info[key.replace('ckpt', 'score')])
            return path, f'{name} {score:.4g}, the best'.strip()
    last = Path(runner.work_dir, 'last_checkpoint')
    return (last.read_text('utf-8').strip() if last.is_file() else ''), ''


def as_share(name: str, score: float) -> float:
    """Return a score as a part of one."""
    return score / 100 if PERCENT.fullmatch(name) else score


def name_of_score(runner: Runner) -> str:
    """Return the score that chooses the best checkpoint; '' for several."""
    names = {
        name
        for hook in getattr(runner, 'hooks', ())
        for name in getattr(hook, 'key_indicators', None) or ()
    }
    return names.pop() if len(names) == 1 else ''


def summary(
    runner: Runner,
    cfg: Config,
    config: str,
    export_options: Sequence[str],
    draws: bool = True,
) -> list[str]:
    """Return lines for the end of a training: what there is, and the next commands,
    with options for export.py; without the command that ``draws`` predictions if none
    does."""
    path, score = best_of(runner)
    lines = dict(
        score=score or ('none, no validation had one' if cfg.get('val_cfg') else ''),
        gradients=infinite_gradients(runner),
        checkpoint=os.path.relpath(path) if path else '',
        **other_files(runner),
    )
    if path:
        lines.update(next_commands(cfg, config, path, export_options, draws))
    return [f'{f"{name}:":<11} {text}' for name, text in lines.items() if text]


def infinite_gradients(runner: Runner) -> str:
    """Return the share of iterations with infinite gradients in words; '' for none."""
    scalars = runner.message_hub.log_scalars
    norms = scalars['train/grad_norm'].data[0] if 'train/grad_norm' in scalars else []
    lost = len(norms) - sum(map(math.isfinite, norms))
    text = f'infinite in {lost} of {len(norms)} iterations, which learned nothing'
    return text if lost else ''


def other_files(runner: Runner) -> dict[str, str]:
    """Draw the curves of a training, and return where they, pictures and the log are;
    '' for what there is not."""
    curves = Path(runner.work_dir, 'curves.png')
    if 'train/loss' in runner.message_hub.log_scalars:
        draw_curves(runner, curves)
    pictures = Path(runner.log_dir, 'vis_data', 'vis_image')
    return dict(
        curves=os.path.relpath(curves) if curves.is_file() else '',
        pictures=os.path.relpath(pictures) if pictures.is_dir() else '',
        log=os.path.relpath(runner.log_dir),
    )


def next_commands(
    cfg: Config, config: str, path: str, export_options: Sequence[str], draws: bool
) -> dict[str, str]:
    """Return the commands that take a checkpoint, see :func:`summary`."""
    model = [config, os.path.relpath(path)]
    commands = {}
    if cfg.get('test_dataloader') is None:  # as of self-supervised models
        commands['start'] = f'pretrained={model[1]!r} in another config'
    else:
        commands['test'] = program.command('test', *model)
        if draws:
            options = '--checkpoint', model[1], '--image', 'PHOTOS'
            commands['predict'] = program.command('predict', config, *options)
    commands['export'] = program.command('export', *model, *export_options)
    return commands
