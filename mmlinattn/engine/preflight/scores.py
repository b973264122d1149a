"""Compares the scores that hooks watch with those of a validation."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional

from mmengine.config import Config
from mmengine.registry import HOOKS, METRICS

from mmlinattn.utils.options import likely

from .evaluators import metrics_of
from .registries import find, scope_of

AUTO = 'auto'  # the first score, by the checkpoint hook
# scores of mmseg's IoUMetric, by its iou_metrics; they have no prefix
OF_IOU = dict(
    mIoU=('aAcc', 'mIoU', 'mAcc'),
    mDice=('aAcc', 'mDice', 'mAcc'),
    mFscore=('aAcc', 'mFscore', 'mPrecision', 'mRecall'),
)
# scores of mmdet's CocoMetric for boxes and for masks
OF_COCO = ('mAP', 'mAP_50', 'mAP_75', 'mAP_s', 'mAP_m', 'mAP_l')
KINDS_OF_COCO = ('bbox', 'segm')


class Watched(NamedTuple):
    """A score that a hook looks up after a validation.

    Attributes:
        key (str): The dotted key that names it.
        score (str): Its name.
        is_needed (bool): Whether the run ends without it.
    """

    key: str
    score: str
    is_needed: bool


def check_scores(cfg: Config, warn: Callable[[str], object]) -> None:
    """Compare the scores that hooks watch with those of ``val_evaluator``, as far as
    its metrics are the libraries' own.

    Raises:
        ValueError: If ``save_best`` or a strict early stopping names another score: the
            run would end after its first validation.
    """
    with scope_of(cfg):
        known = [scores_of(metric) for metric in metrics_of(cfg.get('val_evaluator'))]
        hooks = list(watched(cfg))
    if not known or None in known or has_own_evaluator(cfg):
        return
    names = [name for scores in known for name in scores or ()]
    for key, score, is_needed in hooks:
        is_loss = 'loss' in score  # of the model, by newer MMEngine
        if is_loss or any(matches(score, name) for name in names):
            continue
        hint = advice(score, names)
        text = f'{key}={score!r} is no score of val_evaluator; {hint}'
        if is_needed:
            raise ValueError(text)
        warn(text)


def advice(score: str, names: list[str]) -> str:
    """Return the likely name of a score, or all names, in words."""
    last = score.rpartition('/')[2]
    open_names = [name[:-1] + score for name in names if name.endswith('*')]
    in_full = [name for name in names if name.endswith(f'/{last}')]
    if '/' not in score and len(open_names) == len(names) == 1:
        in_full += open_names
    choice = likely(score, names) or likely(last, names) or next(iter(in_full), None)
    return f'did you mean {choice!r}?' if choice else f'it has {", ".join(names)}'


def has_own_evaluator(cfg: Config) -> bool:
    """Return whether metrics are evaluated by a class besides MMEngine's, which may
    change names of scores."""
    evaluator = cfg.get('val_evaluator')
    kind = evaluator.get('type') if isinstance(evaluator, dict) else None
    has_metrics = isinstance(evaluator, dict) and 'metrics' in evaluator
    return has_metrics and kind not in (None, 'Evaluator', 'mmengine.Evaluator')


def scores_of(metric: dict[str, Any]) -> Optional[list[str]]:
    """Return the names of a metric's scores, where ``*`` stands for any ending; None if
    they are not known."""
    kind = find(METRICS, metric.get('type'))
    library = getattr(kind, '__module__', '').partition('.')[0]
    prefix = metric.get('prefix') or getattr(kind, 'default_prefix', None)
    names_of = NAMES_OF.get((library, getattr(kind, '__name__', '')))
    if names_of is not None:
        names = names_of(metric)
    elif prefix and library in ('mmdet', 'mmpretrain'):
        names = ['*']
    else:
        return None
    return [f'{prefix}/{name}' if prefix else name for name in names]


def names_of_iou(metric: dict[str, Any]) -> list[str]:
    """Return the scores of mmseg's IoUMetric."""
    wanted = names_in(metric.get('iou_metrics', 'mIoU'))
    return [score for name in wanted for score in OF_IOU.get(name, ())]


def names_of_coco(metric: dict[str, Any]) -> list[str]:
    """Return the scores of mmdet's CocoMetric, without its prefix."""
    wanted = names_in(metric.get('metric', 'bbox'))
    has_others = metric.get('classwise') or metric.get('metric_items')
    if has_others or not set(wanted) <= set(KINDS_OF_COCO):
        return ['*']
    return [f'{kind}_{score}' for kind in wanted for score in OF_COCO]


NAMES_OF = {
    ('mmseg', 'IoUMetric'): names_of_iou,
    ('mmdet', 'CocoMetric'): names_of_coco,
}


def names_in(names: Any) -> list[str]:
    """Return the names of an option that takes one or several."""
    return [names] if isinstance(names, str) else list(names)


def matches(score: str, name: str) -> bool:
    """Return whether a score has a name of :func:`scores_of`."""
    return score.startswith(name[:-1]) if name.endswith('*') else score == name


def watched(cfg: Config) -> Iterator[Watched]:
    """Yield the scores that checkpoints and early stopping watch."""
    defaults = cfg.get('default_hooks') or {}
    best = (defaults.get('checkpoint') or {}).get('save_best')
    for score in names_in(best or ()):
        if score != AUTO:
            yield Watched('default_hooks.checkpoint.save_best', score, True)
    for index, hook in enumerate(cfg.get('custom_hooks') or ()):
        kind = find(HOOKS, hook.get('type')) if isinstance(hook, dict) else None
        if getattr(kind, '__name__', '') == 'EarlyStoppingHook' and 'monitor' in hook:
            key = f'custom_hooks.{index}.monitor'
            yield Watched(key, hook['monitor'], bool(hook.get('strict')))
