"""Time and memory of a config's predictions and training steps, on its own photos."""

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Optional

import torch
from mmengine.config import Config, ConfigDict
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope
from torch import nn

from mmlinattn.engine.preflight import build_model, core_of, error_in, maps_of
from mmlinattn.utils import core_of_config, library_of, load_config
from mmlinattn.utils.log import quiet
from mmlinattn.utils.measuring import measure_apart, peak_bytes, seconds_of
from mmlinattn.weights import load_safely

from .preparation import drop_amp, load_whole, loader_in_process, place

SWIN = dict(type='mmlinattn.SwinTransformer', arch='tiny')
SWIN_CHANNELS = {4: 96, 8: 192, 16: 384, 32: 768}  # of its maps, by stride


@dataclass(frozen=True, eq=False)
class Variant:
    """A model to measure.

    Attributes:
        title (str): Its name in the table.
        config (str): The path of its config.
        options (dict): Entries of the config to override, by dotted key.
        checkpoint (str, optional): Its weights. Default: those before a training.
        with_swin (bool): Swin-T stands in the place of the backbone.
    """

    title: str
    config: str
    options: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Optional[str] = None
    with_swin: bool = False


class Peak(NamedTuple):
    """Bytes that a prediction and a training step take above what is there before."""

    predict: Optional[int]
    train: Optional[int]


class TimedModel:
    """A model, a photo of its test data and a batch of its training data.

    Its optimizer has a rate of 0, so that training steps do not change weights.

    Args:
        variant (Variant): What is built.
        device (str): Where it runs.

    Attributes:
        model (nn.Module): On the device.
        batch_size (int): Photos of a training step.

    Raises:
        ValueError: If the config can't be built, its data are missing, or Swin-T does
            not fit in the place of the backbone.
    """

    def __init__(self, variant: Variant, device: str) -> None:
        load_safely()
        cfg = load_config(variant.config, dict(variant.options))
        cfg.model = without_downloads(cfg.model)
        if variant.with_swin:
            cfg = swin_in_place(cfg)
        self.scope = library_of(cfg)
        torch.manual_seed(0)
        with error_in(cfg, variant.config):
            self.model: Any = build_model(cfg)
            self.model.init_weights()
        if variant.checkpoint:
            load_whole(self.model, variant.checkpoint)
        self.model = place(self.model, device)
        self.device = device
        with error_in(cfg, 'test_dataloader'):
            photos = loader_in_process(cfg.test_dataloader, batch_size=1)
            self.photo = next(iter(photos))
        with error_in(cfg, 'train_dataloader'):
            self.batch = next(iter(loader_in_process(cfg.train_dataloader)))
        self.batch_size = len(self.batch['inputs'])
        drop_amp(cfg, device)
        with error_in(cfg, 'optim_wrapper'):
            self.optimizer = build_optim_wrapper(self.model, cfg.optim_wrapper)
        for group in self.optimizer.optimizer.param_groups:
            group['lr'] = 0.0

    def predict(self) -> float:
        """Predict the photo, from pixels to results; return seconds."""
        self.model.eval()
        return self.seconds(self.model.test_step, copy.deepcopy(self.photo))

    def train(self) -> float:
        """Make a training step of the batch; return seconds."""
        self.model.train()
        batch = copy.deepcopy(self.batch)
        return self.seconds(self.model.train_step, batch, self.optimizer)

    def seconds(self, step: Callable[..., object], *args: Any) -> float:
        """Return how long a step takes."""
        with quiet(), DefaultScope.overwrite_default_scope(self.scope):
            return seconds_of(partial(step, *args), self.device)

    def peak(self) -> Peak:
        """Measure the memory of both steps, of which one is made before."""
        peaks = []
        for step in (self.predict, self.train):
            step()
            peaks.append(peak_bytes(step, self.device))
        return Peak(*peaks)


def without_downloads(node: Any) -> Any:
    """Return a copy of a model's config without initial weights to read."""
    if isinstance(node, dict):
        parts = {
            key: without_downloads(value)
            for key, value in node.items()
            if not (key == 'init_cfg' and 'checkpoint' in str(value))
        }
        return type(node)(parts)
    if isinstance(node, (list, tuple)):
        return type(node)(without_downloads(value) for value in node)
    return node


def swin_in_place(cfg: Config) -> Config:
    """Return a config with Swin-T in the place of its backbone.

    Raises:
        ValueError: If the maps of the backbone are unknown, or have other strides.
    """
    cfg = copy.deepcopy(cfg)
    backbone = core_of(build_model(cfg)).backbone
    swin = dict(SWIN, out_indices=(3,), out_type='avg_featmap')
    channels = {getattr(backbone, 'feature_channels', [0])[-1]: SWIN_CHANNELS[32]}
    maps = maps_of(backbone)
    if maps:
        strides = [stride for _, stride in maps]
        if not {*strides} <= SWIN_CHANNELS.keys():
            text = f'maps of strides {strides}; Swin-T has 4, 8, 16 and 32'
            raise ValueError(f'model.backbone has {text}')
        stages = tuple([*SWIN_CHANNELS].index(stride) for stride in strides)
        swin = dict(SWIN, out_indices=stages)
        channels = {dims: SWIN_CHANNELS[stride] for dims, stride in maps}
    elif not hasattr(backbone, 'feature_channels'):
        raise ValueError('model.backbone makes no maps that are known')
    core = core_of_config(cfg.model)
    core.backbone = ConfigDict(swin)
    reads_maps = 'in_channels' in (core.get('neck') or {})
    for key in ['neck'] if reads_maps else [k for k in core if k != 'backbone']:
        core[key] = with_channels(core[key], channels)
    return cfg


def with_channels(node: Any, channels: Mapping[int, int]) -> Any:
    """Return a copy of a part's config with other numbers of the channels that it
    reads."""
    if isinstance(node, (list, tuple)):
        return type(node)(with_channels(value, channels) for value in node)
    if not isinstance(node, dict):
        return node
    copied = type(node)(node)
    for key, value in node.items():
        if key == 'in_channels' and isinstance(value, int):
            copied[key] = channels.get(value, value)
        elif key == 'in_channels' and isinstance(value, (list, tuple)):
            copied[key] = [channels.get(dims, dims) for dims in value]
        else:
            copied[key] = with_channels(value, channels)
    return copied


def measure_peak(variant: Variant, device: str) -> Peak:
    """Return the memory of a model's steps; on a CPU, of a process of its own."""
    return measure_apart(partial(_peak, variant, device), device)


def _peak(variant: Variant, device: str) -> Peak:
    return TimedModel(variant, device).peak()


def num_parameters(model: nn.Module) -> int:
    """Return the number of a model's parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


def describe_machine(device: str, threads: int) -> str:
    """Return the device and the version of PyTorch, for a table."""
    if torch.device(device).type == 'cuda':
        return f'{torch.cuda.get_device_name()}, PyTorch {torch.__version__}'
    cores = os.cpu_count()
    return f'CPU, {threads} threads of {cores} cores, PyTorch {torch.__version__}'
