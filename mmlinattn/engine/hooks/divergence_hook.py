"""Ends a training whose loss or weights are no longer finite."""

import math
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

from mmengine.hooks import CheckpointHook, Hook
from torch import Tensor, nn
from torch.linalg import LinAlgError

from mmlinattn.engine.resume import find_checkpoint
from mmlinattn.parts import type_name
from mmlinattn.registry import HOOKS

# Losses in a row that are not finite while weights are, as in mixed precision.
LIMIT = 50
# Trained weights are far smaller; a step that makes larger ones leads to overflows.
HUGE = 1e6


class DivergenceError(ArithmeticError):
    """A training diverges: its loss or its weights are no longer finite."""


@HOOKS.register_module()
class DivergenceHook(Hook):
    """Ends a training that diverges, before a checkpoint is written.

    It reads each loss, and the weights wherever a checkpoint may be written. It changes
    neither. A training ends if its weights are not finite there, or behind two losses
    in a row that are not finite, or after 50 such losses with finite weights. Single
    ones are left to the loss scale of mixed precision.

    Weights that are not finite from the beginning are not looked at.

    Raises:
        DivergenceError: It says since which iteration, names the last checkpoint that
            this training has written or begun with, and what helps.
    """

    def __init__(self) -> None:
        self.last: Optional[float] = None  # the last finite loss
        self.since: Optional[int] = None  # iteration of the first loss that is not
        self.count = 0  # of these in a row
        self.saved = False
        self.begun_with: Optional[str] = None
        self.known: set[str] = set()

    def before_train(self, runner: Any) -> None:
        """Find weights that are not finite from the beginning."""
        self.known = {
            name for name, tensor in weights_of(runner.model) if not is_finite(tensor)
        }
        self.begun_with = runner.cfg.get('load_from')

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Read the loss, and the weights before a checkpoint by iterations."""
        loss = outputs.get('loss') if isinstance(outputs, dict) else None
        if isinstance(loss, (int, float)) or (
            isinstance(loss, Tensor) and loss.numel() == 1
        ):
            value = loss.detach() if isinstance(loss, Tensor) else loss
            self.read(runner, float(value))
        if any(
            self.every_n_train_iters(runner, hook.interval)
            for hook in runner.hooks
            if isinstance(hook, CheckpointHook) and not hook.by_epoch
        ):
            self.check_weights(runner)

    def read(self, runner: Any, loss: float) -> None:
        """Read the loss of an iteration."""
        if math.isfinite(loss):
            self.last, self.since, self.count = loss, None, 0
            return
        self.since = runner.iter + 1 if self.since is None else self.since
        self.count += 1
        # processes have other losses, but the same weights from the next step on
        if self.count == 2:
            self.check_weights(runner)
        if self.count >= LIMIT:
            raise self.error(runner, f'{LIMIT} losses in a row are not finite')

    def after_train_epoch(self, runner: Any) -> None:
        """Read the weights before a checkpoint by epochs."""
        self.check_weights(runner)

    def before_val(self, runner: Any) -> None:
        """Read the weights before a validation."""
        if self.since is not None:
            self.check_weights(runner)

    def before_save_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Read the weights, and note that there is a checkpoint."""
        self.check_weights(runner)
        self.saved = True

    def check_weights(self, runner: Any) -> None:
        """Raise an error for weights that are not finite."""
        weights = dict(weights_of(runner.model))
        lost = [name for name, tensor in weights.items() if not is_finite(tensor)]
        if not self.known.issuperset(lost):
            share = f'{len(lost)} of {len(weights)} tensors of weights'
            raise self.error(runner, f'{share} are NaN or infinite')

    def error(
        self, runner: Any, what: str, iteration: Optional[int] = None
    ) -> DivergenceError:
        """Return the error, with the last checkpoint and with what helps. The iteration
        is that of the first loss that is not finite, or ``iteration``, or the last
        one."""
        place = f'in iteration {iteration or runner.iter}'
        if self.since is not None:
            place = f'since iteration {self.since}'
        was = '' if self.last is None else f', the last finite loss was {self.last:.4g}'
        path = find_checkpoint(runner.work_dir) if self.saved else self.begun_with
        last_good = 'no checkpoint yet'
        if path:
            last_good = f'the last finite checkpoint is {path}'
        return DivergenceError(
            f'the training diverges {place}: {what}{was}; {last_good}. What helps: '
            f'{advice(runner.cfg, path)}'
        )

    @contextmanager
    def watch(self, runner: Any) -> Iterator[None]:
        """Turn errors inside of models and losses that NaN has caused into a
        :class:`DivergenceError`: matchers and solvers of equations refuse it. Errors of
        data sets and hooks stay as they are."""
        try:
            yield
        except Exception as error:
            # FlexibleRunner builds its model when a training begins
            is_built = isinstance(runner.model, nn.Module)
            if not is_built or not self.is_of_nan(error, runner.model):
                raise
            said = ' '.join(str(error).split())[:160]
            what = f'values are NaN or too large, at which the model ends ({said})'
            raise self.error(runner, what, runner.iter + 1) from error

    def is_of_nan(self, error: Exception, model: nn.Module) -> bool:
        """Return whether NaN has caused an error: it comes from inside of a model that
        is broken, or from a solver of equations there."""
        if isinstance(error, DivergenceError) or not passes_through(error, model):
            return False
        return self.is_broken(model) or isinstance(error, LinAlgError)

    def is_broken(self, model: nn.Module) -> bool:
        """Return whether the last loss is not finite, or weights are not, or are so
        large that a step has made them so. Statistics of norms are as large as pixels
        are."""
        if self.since is not None:
            return True
        parameters = {name for name, _ in model.named_parameters()}
        lost = [
            name
            for name, tensor in weights_of(model)
            if not is_finite(tensor, HUGE if name in parameters else math.inf)
        ]
        return not self.known.issuperset(lost)


def passes_through(error: BaseException, model: nn.Module) -> bool:
    """Return whether an error was raised inside of a model, its losses included."""
    modules = {id(module) for module in model.modules()}
    return any(
        id(frame.f_locals.get('self')) in modules
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def weights_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield parameters of a model, and running statistics of its norms."""
    yield from model.named_parameters()
    for name, buffer in model.named_buffers():
        if name.endswith(('running_mean', 'running_var')):
            yield name, buffer


def is_finite(x: Tensor, most: float = math.inf) -> bool:
    """Return True if all values are finite, and not above ``most``."""
    if not x.is_floating_point() or not x.numel():
        return True
    largest = x.detach().abs().max().item()
    return math.isfinite(largest) and largest <= most


def advice(cfg: Any, path: Optional[str]) -> str:
    """Return what to set in a config against divergence, and how to begin anew."""
    wrapper = cfg.get('optim_wrapper')
    wrapper = wrapper if isinstance(wrapper, dict) else {}
    rate = (wrapper.get('optimizer') or {}).get('lr')
    now = f', {rate:g} now' if isinstance(rate, (int, float)) else ''
    parts = [f'a lower learning rate (optim_wrapper.optimizer.lr{now})']
    if not wrapper.get('clip_grad'):
        parts.append('clipped gradients (optim_wrapper.clip_grad.max_norm=1)')
    schedule = cfg.get('param_scheduler') or ()
    if 'LinearLR' not in str(schedule):
        parts.append('a warm-up (LinearLR in param_scheduler)')
    if type_name(wrapper) == 'AmpOptimWrapper':
        parts.append('float32 in place of mixed precision')
    text = ', '.join(parts)
    if path:
        text += f'; load_from={path} in --cfg-options begins with its weights'
    return text
