"""Measures the smoothness of a backbone's tokens while it trains."""

import math
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from torch import nn

from mmlinattn.analysis import attentions_of, hc_proportion, token_similarity, watch
from mmlinattn.registry import HOOKS
from mmlinattn.weights.transfer import is_scaling_vector


@HOOKS.register_module()
class OversmoothingHook(Hook):
    """Logs how smooth the tokens are after each block, and the scaling vectors.

    Every ``interval`` iterations it measures the training step, and writes scalars to
    the visualizer, and so to all of its backends (local files, TensorBoard, W&B):

    - ``oversmoothing/hc_proportion/BLOCK``: high-frequency proportion of the block's
      output, ``||HC[X]|| / ||X||``, mean over the images;
    - ``oversmoothing/token_similarity/BLOCK``: mean cosine similarity of pairs of up to
      ``num_tokens`` evenly spread tokens, mean over the images;
    - ``oversmoothing/scale_norm/PARAMETER``: norm of each vector of AttnScale and
      FeatScale.

    It measures only the first ``num_images`` images of the first process's batch.
    Between measurements it computes nothing and has no forward hook. A measurement
    costs about 1 % of a step: ``num_tokens``^2 C multiply-accumulates per block.

    Args:
        interval (int): Iterations from one measurement to the next. Default: 100.
        num_images (int): Images to measure. Default: 1.
        num_tokens (int): Largest number of tokens to compare. Default: 256.

    Raises:
        ValueError: In ``before_train``, if the model has no attention of mmlinattn.
    """

    priority = 'BELOW_NORMAL'

    def __init__(
        self, interval: int = 100, num_images: int = 1, num_tokens: int = 256
    ) -> None:
        self.interval = interval
        self.num_images = num_images
        self.num_tokens = num_tokens
        self.watching: Any = None
        self.scalars: dict[str, torch.Tensor] = {}

    def before_train(self, runner: Any) -> None:
        """Raises an error for models without blocks to measure."""
        attentions_of(unwrapped(runner.model))

    def before_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None
    ) -> None:
        """Begins a measurement, every ``interval`` iterations."""
        if runner.rank == 0 and self.every_n_train_iters(runner, self.interval):
            self.watching = watch(unwrapped(runner.model), on_block=self.measure)
            self.watching.__enter__()

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Ends the measurement, and logs it."""
        if self.watching is None:
            return
        self.watching.__exit__(None, None, None)
        self.watching = None
        scalars, self.scalars = self.scalars, {}
        for name, parameter in unwrapped(runner.model).named_parameters():
            if is_scaling_vector(name):
                scalars[f'scale_norm/{name}'] = parameter.detach().norm()
        # one transfer from the device
        values = torch.stack([value.float() for value in scalars.values()]).tolist()
        logged = {
            f'oversmoothing/{name}': value
            for name, value in zip(scalars, values)
            if math.isfinite(value)
        }
        runner.visualizer.add_scalars(logged, step=runner.iter + 1)

    @torch.no_grad()
    def measure(self, block: Any) -> None:
        """Measures the output of a block; the last one, if it is computed again."""
        tokens = block.tokens[: self.num_images].detach().float()
        num = min(tokens.size(1), self.num_tokens)
        places = torch.linspace(0, tokens.size(1) - 1, num, device=tokens.device)
        self.scalars[f'hc_proportion/{block.name}'] = hc_proportion(tokens).mean()
        if num > 1:
            spread = tokens[:, places.round().long()]
            similarity = token_similarity(spread).mean()
            self.scalars[f'token_similarity/{block.name}'] = similarity


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside a wrapper for parallel training."""
    return model.module if is_model_wrapper(model) else model
