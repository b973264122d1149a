"""MESA: a classifier learns from the moving average of its own weights."""

from typing import Any

import torch
from mmengine.hooks import EMAHook, Hook
from mmengine.registry import MODELS
from mmengine.runner import IterBasedTrainLoop
from torch import nn
from torch.nn.functional import cross_entropy

from mmlinattn.functional.precision import at_least_float32
from mmlinattn.registry import HOOKS


@HOOKS.register_module()
class MESAHook(Hook):
    """Adds ``loss_mesa``, the cross-entropy to the predictions of the averaged model.

    Source: Du et al., Sharpness-Aware Training for Free (NeurIPS 2022,
    arXiv 2205.14083), in the form of MLLA's recipe: with scores z of the model and z'
    of the averaged model, (B, K) each,

        loss_mesa = -factor / B sum_b sum_k softmax(z'_b)_k log softmax(z_b)_k

    The paper has the Kullback-Leibler divergence, whose gradient is the same, and a
    temperature, here 1. The averaged model is that of the ``EMAHook``, which the config
    must have too. It sees the model's own batch, mixed and augmented, in evaluation
    mode and without gradient, and draws no random numbers: a step costs one more
    forward pass. The loss is computed in float32 at least, and is added before the
    backward pass, so that mixed precision, accumulated gradients and parallel training
    work unchanged. MMEngine's ``loss`` in the log is that of the labels alone.

    Args:
        factor (float): Factor of the loss; MLLA-T 1.0, S 1.5, B 2.0. Default: 1.0.
        begin (float): Share of the training after which the loss is added, rounded down
            to whole epochs, or to iterations in a training by iterations.
            Default: 0.25.

    Raises:
        ValueError: In ``before_train``, if there is no EMAHook, or the model has no
            head for one class of many (``ClsHead`` of mmpretrain or a subclass).
    """

    def __init__(self, factor: float = 1.0, begin: float = 0.25) -> None:
        self.factor = factor
        self.begin = begin
        self.active = False
        self.scores: Any = None
        self.teacher: Any = None
        self.handles: tuple = ()

    def before_train(self, runner: Any) -> None:
        """Find the averaged model, and watches the model and its head."""
        ema = next((hook for hook in runner.hooks if isinstance(hook, EMAHook)), None)
        if ema is None:
            raise ValueError(
                'MESAHook learns from the averaged model of an EMAHook, and there is '
                "none: add dict(type='EMAHook', momentum=1e-4) to custom_hooks"
            )
        model, self.teacher = ema.src_model, ema.ema_model.module.eval()
        if ema.ema_model.steps == 0:  # it was copied before weights were initialized
            self.teacher.load_state_dict(model.state_dict())
        head: Any = getattr(model, 'head', None)
        if not isinstance(head, MODELS.get('mmpretrain.ClsHead') or ()):
            raise ValueError(
                'MESAHook needs a classifier whose head is a ClsHead of mmpretrain; '
                f'the head of {type(model).__name__} is {type(head).__name__}'
            )
        # compilers miss hooks that are added later
        self.handles = (
            head.register_forward_hook(self.keep_scores),
            model.register_forward_hook(self.add_loss, with_kwargs=True),
        )

    def before_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None
    ) -> None:
        """Switch the loss on or off for the step."""
        loop = runner.train_loop
        if isinstance(loop, IterBasedTrainLoop):
            self.active = loop.iter >= int(self.begin * loop.max_iters)
        else:
            self.active = loop.epoch >= int(self.begin * loop.max_epochs)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Switch the loss off for validation."""
        self.active = False

    def after_train(self, runner: Any) -> None:
        """Remove the hooks from the model."""
        for handle in self.handles:
            handle.remove()

    def keep_scores(self, head: Any, args: Any, scores: Any) -> None:
        """Forward hook of the head."""
        if self.active:
            self.scores = scores

    def add_loss(self, model: nn.Module, args: Any, kwargs: Any, losses: dict) -> None:
        """Forward hook of the model."""
        if not self.active or kwargs.get('mode') != 'loss':
            return
        scores, self.scores = self.scores, None
        with torch.no_grad():
            targets = self.teacher(kwargs['inputs'] if 'inputs' in kwargs else args[0])
        scores, targets = at_least_float32(scores, targets)
        losses['loss_mesa'] = self.factor * cross_entropy(scores, targets.softmax(-1))
