"""Child registries of MMEngine's roots, scope ``mmlinattn``.

MMEngine imports ``<scope>.registry`` by itself, so ``type='mmlinattn.X'`` is
found from mmengine, mmdet, mmseg and mmpretrain without any import.
"""

from mmengine.registry import HOOKS as MMENGINE_HOOKS
from mmengine.registry import MODEL_WRAPPERS as MMENGINE_MODEL_WRAPPERS
from mmengine.registry import MODELS as MMENGINE_MODELS
from mmengine.registry import (
    OPTIM_WRAPPER_CONSTRUCTORS as MMENGINE_OPTIM_WRAPPER_CONSTRUCTORS,
)
from mmengine.registry import OPTIM_WRAPPERS as MMENGINE_OPTIM_WRAPPERS
from mmengine.registry import Registry

MODELS = Registry(
    'model', parent=MMENGINE_MODELS, scope='mmlinattn', locations=['mmlinattn.models']
)
HOOKS = Registry(
    'hook', parent=MMENGINE_HOOKS, scope='mmlinattn', locations=['mmlinattn.engine']
)
OPTIM_WRAPPERS = Registry(
    'optimizer wrapper',
    parent=MMENGINE_OPTIM_WRAPPERS,
    scope='mmlinattn',
    locations=['mmlinattn.engine'],
)
OPTIM_WRAPPER_CONSTRUCTORS = Registry(
    'optimizer wrapper constructor',
    parent=MMENGINE_OPTIM_WRAPPER_CONSTRUCTORS,
    scope='mmlinattn',
    locations=['mmlinattn.engine'],
)
MODEL_WRAPPERS = Registry(
    'model_wrapper',
    parent=MMENGINE_MODEL_WRAPPERS,
    scope='mmlinattn',
    locations=['mmlinattn.utils.distributed'],
)


def build_model(cfg, **kwargs):
    """Builds a part of one of our models in scope ``mmlinattn``.

    The default scope of a run is that of its task (mmdet, mmseg, ...), where
    an unscoped ``type='SoftmaxAttention'`` would not be found.

    Args:
        cfg (dict): ``type`` and arguments; what it says wins over ``kwargs``.
        **kwargs: Arguments that the enclosing model knows.

    Returns:
        nn.Module: The built part.

    Raises:
        KeyError: If no such ``type`` is registered.
    """
    return MODELS.build({**kwargs, **cfg, '_scope_': 'mmlinattn'})
