"""Child registries of MMEngine's roots, scope ``mmlinattn``.

MMEngine imports ``<scope>.registry`` by itself, so ``type='mmlinattn.X'`` is
found from mmengine, mmdet, mmseg and mmpretrain without any import.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Optional

import mmlinattn

mmlinattn.check_versions()

from mmengine import registry as roots  # noqa: E402

from . import parts  # noqa: E402

# classes whose bases belong to libraries that not everyone has, and where they are
NAMED_LATER = {
    'AttentionAlignment': 'mmlinattn.engine.alignment',
    'EfficientViTHead': 'mmlinattn.models.segmentation.efficientvit_head',
    'EfficientViTSegmentor': 'mmlinattn.models.segmentation.efficientvit_segmentor',
    'FeatureAlignment': 'mmlinattn.engine.alignment',
}


class ModelRegistry(roots.Registry):
    """Our table of classes as a registry, which imports some when they are asked for.

    What is registered here is known to :mod:`mmlinattn.parts`, and the other way round.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._module_dict = parts.CLASSES

    def get(self, key: str) -> Optional[type]:
        name = str(key).rpartition('.')[2]
        if name in NAMED_LATER and name not in self.module_dict:
            import_module(NAMED_LATER[name])
        return super().get(key)


MODELS = ModelRegistry(
    'model',
    parent=roots.MODELS,
    scope=parts.SCOPE,
    # norms and activations of mmcv are parts of configs
    locations=['mmlinattn.models', *(['mmcv.cnn'] if find_spec('mmcv') else [])],
)
HOOKS = roots.Registry(
    'hook', parent=roots.HOOKS, scope=parts.SCOPE, locations=['mmlinattn.engine']
)
OPTIM_WRAPPER_CONSTRUCTORS = roots.Registry(
    'optimizer wrapper constructor',
    parent=roots.OPTIM_WRAPPER_CONSTRUCTORS,
    scope=parts.SCOPE,
    locations=['mmlinattn.engine'],
)


def build_model(cfg: Mapping[str, Any], **kwargs: Any) -> Any:
    """Build one of our models or a part of one, whatever the default scope is: see
    :func:`mmlinattn.parts.build_model`."""
    MODELS.import_from_location()
    return parts.build_model(cfg, **kwargs)
