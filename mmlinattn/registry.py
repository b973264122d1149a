"""Child registries of MMEngine's roots, scope ``mmlinattn``.

MMEngine imports ``<scope>.registry`` by itself, so ``type='mmlinattn.X'`` is
found from mmengine, mmdet, mmseg and mmpretrain without any import.
"""

from typing import Any

import mmlinattn

mmlinattn.check_versions()

from mmengine import registry as roots  # noqa: E402

MODELS = roots.Registry(
    'model', parent=roots.MODELS, scope='mmlinattn', locations=['mmlinattn.models']
)
HOOKS = roots.Registry(
    'hook', parent=roots.HOOKS, scope='mmlinattn', locations=['mmlinattn.engine']
)
OPTIM_WRAPPER_CONSTRUCTORS = roots.Registry(
    'optimizer wrapper constructor',
    parent=roots.OPTIM_WRAPPER_CONSTRUCTORS,
    scope='mmlinattn',
    locations=['mmlinattn.engine'],
)


def build_model(cfg: dict, **kwargs: Any) -> Any:
    """Builds a part of one of our models in scope ``mmlinattn``.

    The default scope of a run is that of its task (mmdet, mmseg, ...), where an
    unscoped ``type='SoftmaxAttention'`` would not be found. The entries of the config
    override ``kwargs``, which the enclosing model knows.
    """
    return MODELS.build({**kwargs, **cfg, '_scope_': 'mmlinattn'})
