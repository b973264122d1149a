"""Child registries of MMEngine's roots, scope ``mmlinattn``.

MMEngine imports ``<scope>.registry`` by itself, so ``type='mmlinattn.X'`` is
found from mmengine, mmdet, mmseg and mmpretrain without any import.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Optional

import mmlinattn

mmlinattn.check_versions()

from mmengine import registry as roots  # noqa: E402

# classes whose bases belong to libraries that not everyone has, and where they are
NAMED_LATER = {
    'EfficientViTHead': 'mmlinattn.models.segmentation.efficientvit_head',
    'EfficientViTSegmentor': 'mmlinattn.models.segmentation.efficientvit_segmentor',
}


class ModelRegistry(roots.Registry):
    """A registry that imports some classes when they are asked for."""

    def get(self, key: str) -> Optional[type]:
        name = str(key).rpartition('.')[2]
        if name in NAMED_LATER and name not in self.module_dict:
            import_module(NAMED_LATER[name])
        return super().get(key)


MODELS = ModelRegistry(
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


def in_scope(cfg: Mapping[str, Any]) -> dict[str, Any]:
    """A config with the class in place of a name that scope ``mmlinattn`` knows,
    whatever the default scope is.

    The default scope of a run is that of its task (mmdet, mmseg, ...). It stays: all
    threads share it, and another one may be building a model.
    """
    cfg = {key: value for key, value in cfg.items() if key != '_scope_'}
    name = cfg.get('type')
    if isinstance(name, str):
        cfg['type'] = MODELS.get(name) or name
    return cfg


def build_model(cfg: Mapping[str, Any], **kwargs: Any) -> Any:
    """Builds a part of one of our models, in scope ``mmlinattn``. The entries of the
    config override ``kwargs``, which the enclosing model knows.

    Raises:
        KeyError: If there is no class of this name.
    """
    cfg = in_scope(cfg)
    if isinstance(cfg.get('type'), str):
        raise KeyError(f'{cfg["type"]} is not in the mmlinattn::model registry')
    return MODELS.build({**kwargs, **cfg})
