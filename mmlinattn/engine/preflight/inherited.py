"""Warns of what a base config says of another backbone than ours."""

from collections.abc import Callable, Iterator
from typing import Any

from mmengine.config import Config
from torch import Tensor, nn

from mmlinattn.engine.hooks.pretrained_backbone_hook import find_hook, other_start
from mmlinattn.models.backbones.base import BaseBackbone

Warn = Callable[[str], object]
NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm)


def check_inherited(cfg: Config, model: Any, warn: Warn) -> None:
    """Warn of settings of a training that suit no backbone of ours, or not one that
    starts from scratch."""
    if not isinstance(getattr(model, 'backbone', None), BaseBackbone):
        return
    whole = bool(cfg.get('resume') or cfg.get('load_from'))
    public = bool(
        other_start(model, None) or (cfg.get('pretrained') and find_hook(cfg))
    )
    wrapper = cfg.get('optim_wrapper')
    settings = (wrapper.get('paramwise_cfg') if isinstance(wrapper, dict) else {}) or {}
    warn_of_keys(model, settings, warn)
    # a whole model has learned with its own order and scale of pixels
    if public and not whole:
        warn_of_pixels(model, warn)
    if not public and not whole:
        warn_of_rates(model, settings, warn)
        warn_of_frozen_stages(model, warn)
    if getattr(getattr(model, 'head', None), 'hidden_dim', None):
        warn(
            f'model.head.hidden_dim={model.head.hidden_dim} is a hidden layer from the '
            'base config: hidden_dim=None leaves it out'
        )


def multipliers(model: nn.Module, settings: Any) -> Iterator[tuple[str, Any]]:
    """Yield names of the backbone's parameters, and the entry of ``custom_keys`` for
    each: that of the longest key in the name, as MMEngine chooses it."""
    custom = settings.get('custom_keys') or {}
    order = sorted(sorted(custom), key=len, reverse=True)
    for name, _ in model.named_parameters():
        if name.startswith('backbone.'):
            key = next((part for part in order if part in name), None)
            yield name, {} if key is None else custom[key]


def warn_of_keys(model: nn.Module, settings: Any, warn: Warn) -> None:
    """Warn of keys for blocks that the backbone has not, if norms of its own have
    weight decay though the keys are to prevent it, or if no key matches."""
    custom = settings.get('custom_keys') or {}
    keys = [key for key in custom if key.startswith('backbone.')]
    unmatched = keys_without_parameters(model, keys)
    if not unmatched:
        return
    text = (
        f'{len(unmatched)} of {len(keys)} keys of '
        'optim_wrapper.paramwise_cfg.custom_keys for parts of the backbone name none '
        f'of its parameters, such as {unmatched[0]!r}'
    )
    if len(unmatched) == len(keys):
        warn(f'{text}: remove them, or name its parts')
    elif any(custom[key].get('decay_mult') == 0 for key in keys):
        decayed = norms_with_decay(model, settings)
        if decayed:
            warn(
                f'{text}: {len(decayed)} of its norms have weight decay ({decayed[0]})'
            )


def keys_without_parameters(model: nn.Module, keys: list[str]) -> list[str]:
    """Return those of ``custom_keys`` that are in no parameter's name."""
    names = [name for name, _ in model.named_parameters()]
    return [key for key in keys if not any(key in name for name in names)]


def norms_with_decay(model: nn.Module, settings: Any) -> list[str]:
    """Return names of the backbone's weights of norms that ``custom_keys`` leave weight
    decay; for those without a key, ``norm_decay_mult`` counts."""
    norms = {
        f'{name}.weight'
        for name, module in model.named_modules()
        if isinstance(module, NORMS)
    }
    return [
        name
        for name, entry in multipliers(model, settings)
        if name in norms and entry.get('decay_mult', 1)
    ]


def warn_of_rates(model: nn.Module, settings: Any, warn: Warn) -> None:
    """Warn of a lower learning rate in a backbone that starts from scratch."""
    rates = [entry.get('lr_mult', 1) for _, entry in multipliers(model, settings)]
    place = 'optim_wrapper.paramwise_cfg'
    if rates and max(rates) < 1:
        warn(
            f'the backbone has no weights to start from, and {place}.custom_keys lets '
            f'it learn at {max(rates):g} of the rate: set lr_mult=1, or pretrained '
            'weights'
        )
    decay = settings.get('layer_decay_rate', settings.get('decay_rate', 1))
    if isinstance(decay, (int, float)) and decay < 1:
        warn(
            'the backbone has no weights to start from, and lower rates in its first '
            f'layers: set {place} without a layer decay of {decay:g}, or pretrained '
            'weights'
        )


def warn_of_frozen_stages(model: Any, warn: Warn) -> None:
    """Warn of random weights that are not trained."""
    stages = model.backbone.frozen_stages
    if stages >= 0:
        warn(
            'the backbone has no weights to start from, and model.backbone.'
            f'frozen_stages={stages} keeps random ones: set frozen_stages=-1'
        )


def warn_of_pixels(model: Any, warn: Warn) -> None:
    """Warn of photos that are not normalized or not RGB, as the weights expect it."""
    preprocessor = getattr(model, 'data_preprocessor', None)
    std = getattr(preprocessor, 'std', None)
    if model.backbone.in_channels != 3 or preprocessor is None:
        return
    if not isinstance(std, Tensor) or std.max() <= 1:
        warn(
            'data_preprocessor has no std, so the model gets values of 0 to 255, and '
            'the weights of its backbone expect normalized ones: set '
            'mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], '
            f'{channel_option(preprocessor)}=True'
        )
    elif not any(
        getattr(preprocessor, name, False)
        for name in ('_channel_conversion', 'channel_conversion', 'to_rgb')
    ):
        warn(
            'data_preprocessor leaves photos in the order BGR, and the weights of the '
            f'backbone expect RGB: set {channel_option(preprocessor)}=True, and mean '
            'and std in this order'
        )


def channel_option(preprocessor: Any) -> str:
    """Return the option of a preprocessor that makes RGB."""
    is_classifiers = type(preprocessor).__name__.startswith(('Cls', 'SelfSup'))
    return 'to_rgb' if is_classifiers else 'bgr_to_rgb'
