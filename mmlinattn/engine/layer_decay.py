"""Layer-wise learning rate decay for classifiers, detectors and segmentors."""

from typing import Any

from mmengine.logging import print_log
from mmengine.optim import DefaultOptimWrapperConstructor
from torch import nn

from mmlinattn.registry import OPTIM_WRAPPER_CONSTRUCTORS

OPTION = 'layer_decay_rate'


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class LayerDecayOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """Learning rates that shrink from a backbone's last layer to its first.

    A parameter of layer i of n trains with lr * layer_decay_rate^(n - 1 - i), as in
    BEiT (arXiv 2106.08254). The backbone's method ``get_layer_depth`` gives the layers,
    so any model with such a backbone works. Parameters outside of the backbone train
    with the full rate.

    All other options are MMEngine's; ``lr_mult`` of ``custom_keys`` multiplies the
    decayed rate.

    Args:
        optim_wrapper_cfg (dict): See MMEngine's constructor; the optimizer needs its
            ``lr``.
        paramwise_cfg (dict): MMEngine's options, and ``layer_decay_rate`` in (0, 1].

    Raises:
        ValueError: If ``layer_decay_rate`` is missing or not in (0, 1], or, when
            called, no part of the model has ``get_layer_depth``.

    Example:
        >>> optim_wrapper = dict(
        ...     optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.1),
        ...     constructor='mmlinattn.LayerDecayOptimWrapperConstructor',
        ...     paramwise_cfg=dict(layer_decay_rate=0.7, norm_decay_mult=0.0),
        ... )
    """

    def _validate_cfg(self) -> None:
        super()._validate_cfg()
        rate = self.paramwise_cfg.get(OPTION)
        if rate is None or not 0 < rate <= 1:
            raise ValueError(
                f'paramwise_cfg needs a {OPTION} in (0, 1], got {OPTION}={rate!r}'
            )

    def add_params(
        self, params: list, module: nn.Module, prefix: str = '', **kwargs: Any
    ) -> None:
        """Add a group for every trained parameter, like MMEngine's method."""
        super().add_params(params, module, prefix=prefix, **kwargs)
        # MMEngine calls this for every child, and for the model itself last
        if not prefix:
            self.decay(params, module)

    def decay(self, params: list, model: nn.Module) -> None:
        """Multiply the groups' learning rates, and logs it."""
        backbones = find_backbones(model)
        rate = self.paramwise_cfg[OPTION]
        names = {id(param): name for name, param in model.named_parameters()}
        for group in params:
            name = names[id(group['params'][0])]
            scale = 1.0
            for prefix, get_layer_depth in backbones.items():
                if name.startswith(prefix):
                    layer, num_layers = get_layer_depth(name, prefix)
                    scale = rate ** (num_layers - 1 - layer)
            group['lr'] = group.get('lr', self.base_lr) * scale
            group['lr_scale'] = scale
            group['param_name'] = name
        least = min(group['lr_scale'] for group in params)
        print_log(f'layer decay: rates are multiplied by {least:.3g} to 1', 'current')


def find_backbones(model: nn.Module) -> dict[str, Any]:
    """``get_layer_depth`` of the outermost parts of a model that have it, by the prefix
    of their parameters' names."""
    depth_of: dict[str, Any] = {}
    for name, module in model.named_modules():
        # a classifier has the method too, but asks its backbone
        inside = not name or name.startswith(tuple(depth_of))
        if hasattr(module, 'get_layer_depth') and not inside:
            depth_of[f'{name}.'] = module.get_layer_depth
    if not depth_of:
        raise ValueError(
            f'{OPTION} needs a backbone with get_layer_depth, such as those of '
            f'mmlinattn and some of mmpretrain; {type(model).__name__} has none'
        )
    return depth_of
