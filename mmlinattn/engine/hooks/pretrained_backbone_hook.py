"""The ``pretrained`` variable of our configs."""

from collections.abc import Callable
from typing import Any, Optional

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.optim import OptimWrapper
from mmengine.runner import find_latest_checkpoint
from torch import nn

from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.models.layers.initialization import is_pretrained
from mmlinattn.registry import HOOKS
from mmlinattn.weights.pretrained import Comparison, compare


@HOOKS.register_module()
class PretrainedBackboneHook(Hook):
    """Starts the backbone from the weights that ``pretrained`` names.

    ``pretrained`` is a variable of the config: a path or an address of a
    checkpoint, or None. MMEngine resolves variables when it reads a file, so
    one that an inheriting config or the command line sets would not reach
    ``model.backbone.init_cfg``. This hook puts it there before MMEngine
    initializes the model. Weights that ``load_from`` or an ``init_cfg`` names
    override it. With None, the backbone trains from scratch, and the log warns of
    it. The hook does nothing in a resumed run and in a test.

    It belongs in ``default_hooks``, to which an inheriting config adds entries;
    ``custom_hooks`` is a list, which such a config would replace.

    Args:
        warn (bool): Warns that a backbone trains from scratch, which ImageNet recipes
            intend. Default: True.
        head (bool): Also loads the last layer of a classifier, and a neck that has
            weights, as in fine-tuning of one of our backbones. Default: False.
    """

    def __init__(self, warn: bool = True, head: bool = False) -> None:
        self.warn = warn
        self.head = head
        # a result of check_pretrained, to start from without reading the file again
        self.comparison: Optional[Comparison] = None

    def before_run(self, runner: Any) -> None:
        """Set ``init_cfg`` of the backbone, before weights are initialized."""
        # only training builds the optimizer
        if not isinstance(runner.optim_wrapper, OptimWrapper):
            return
        cfg = runner.cfg
        load_from = cfg.get('load_from')
        if cfg.get('resume') and (load_from or find_latest_checkpoint(runner.work_dir)):
            return
        model = runner.model
        model = model.module if is_model_wrapper(model) else model
        pretrained, other = cfg.get('pretrained'), other_start(model, load_from)
        if other and pretrained:
            runner.logger.info(f'{other} overrides pretrained={pretrained!r}')
        elif pretrained:
            self.set_init_cfg(model, pretrained)
        elif self.warn and not other:
            runner.logger.warning(
                'The backbone trains FROM SCRATCH: pretrained=None. To start '
                'from ImageNet weights, set pretrained in the config or on the '
                'command line: --cfg-options pretrained=CHECKPOINT'
            )

    def set_init_cfg(self, model: nn.Module, pretrained: str) -> None:
        """Name the weights in ``init_cfg`` of the backbones, with which MMEngine
        initializes a model: it calls them without arguments, so that what was compared
        before, and the modules of the head, are entries of it too."""
        # copies of the model share a function, and so no weights
        options: dict[str, Any] = dict(name='pretrained', earlier=self.take_comparison)
        for backbone in backbones_of(model):
            init_cfg = dict(type='Pretrained', checkpoint=pretrained)
            if isinstance(backbone, BaseBackbone):
                # the others initialize what the weights lack
                others = backbone.init_cfg
                others = [others] if isinstance(others, dict) else others
                backbone.init_cfg = [*others, {**init_cfg, **options}]
                options = dict(name='pretrained')  # the comparison is the first one's
            else:
                backbone.init_cfg = init_cfg
        if self.head:
            parts = parts_of(model)
            model.backbone.init_cfg[-1]['parts'] = parts

    def take_comparison(self) -> Optional[Comparison]:
        """:attr:`comparison`, once."""
        comparison, self.comparison = self.comparison, None
        return comparison


def backbones_of(model: nn.Module) -> list[Any]:
    """Return the backbone of a model, or those of a student and a teacher."""
    named = model.named_modules()
    return [module for name, module in named if name.rpartition('.')[2] == 'backbone']


def parts_of(model: nn.Module) -> dict[str, nn.Module]:
    """Return the neck and head of a classifier, which the backbone's weights
    initialize; a ValueError if it can't."""
    if not isinstance(model.backbone, BaseBackbone):
        raise ValueError(
            'PretrainedBackboneHook(head=True) needs a backbone of mmlinattn, got '
            f'{type(model.backbone).__name__}: name the weights in load_from instead'
        )
    parts = {name: getattr(model, name, None) for name in ('neck', 'head')}
    # a pooling has no weights
    weighted = {
        name: part
        for name, part in parts.items()
        if part is not None and part.state_dict()
    }
    for part in weighted.values():
        part._is_init = True
    return weighted


def other_start(model: nn.Module, load_from: Optional[str]) -> Optional[str]:
    """Return the setting that overrides `pretrained` with other weights, or None."""
    if load_from:
        return 'load_from'
    for module in (*backbones_of(model), model):
        init_cfgs = getattr(module, 'init_cfg', None) or []
        init_cfgs = [init_cfgs] if isinstance(init_cfgs, dict) else init_cfgs
        if any(map(is_pretrained, init_cfgs)):
            return 'model.init_cfg' if module is model else 'model.backbone.init_cfg'
    return None


def check_pretrained(
    cfg: Any,
    model: nn.Module,
    named: bool = False,
    warn: Callable[[str], object] = lambda text: None,
) -> Optional[Comparison]:
    """Compare the variable ``pretrained`` with the model of a training.

    Other projects' configs also have a variable of this name. It is in use if its value
    is somewhere in ``model``. ``warn`` takes a line on one without an effect in a
    config with a backbone of ours.

    Returns:
        What of the weights loads, for the attribute ``comparison`` of the hook; None if
        the training does not start from them. The model is to be thrown away.

    Raises:
        KeyError: If the weights do not fit.
        ValueError: If they would have no effect, though their user has ``named`` them.
        OSError: And other errors of :func:`mmlinattn.weights.read_checkpoint`.
    """
    pretrained = cfg.get('pretrained')
    if not pretrained or repr(pretrained) in repr(cfg.get('model')):
        return None
    hook = find_hook(cfg)
    no_effect = (
        f'pretrained={pretrained!r} would have no effect: the config has no '
        'hook that reads it. Add default_hooks=dict(pretrained=dict('
        "type='mmlinattn.PretrainedBackboneHook')), or name the weights in "
        'model.backbone.init_cfg'
    )
    if named and hook is None:
        raise ValueError(no_effect)
    ours = [
        backbone
        for backbone in backbones_of(model)
        if isinstance(backbone, BaseBackbone)
    ]
    if not ours or other_start(model, None):
        return None
    if hook is None:
        warn(no_effect)
        return None
    head = hook.head if isinstance(hook, Hook) else hook.get('head')
    parts = parts_of(model) if head else None
    return compare(ours[0], pretrained, 'pretrained', parts=parts)


def find_hook(cfg: Any) -> Any:
    """Return the hook of a config that reads ``pretrained``: a dict with its name or
    class, or the hook itself; None if there is none."""
    hooks = list((cfg.get('default_hooks') or {}).values())
    hooks += cfg.get('custom_hooks') or []
    name = PretrainedBackboneHook.__name__
    return next((hook for hook in hooks if name in repr(hook)), None)
