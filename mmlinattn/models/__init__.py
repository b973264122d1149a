from importlib.util import find_spec

from mmlinattn import registry as registry  # says first which versions do not fit

if find_spec('mmcv') is None:
    raise ImportError(
        'mmlinattn.models needs mmcv 2, for which mmcv-lite is enough: pip install '
        "'mmcv-lite>=2.0.0,<2.2.0' (with the onedl packages: pip install onedl-mmcv)"
    )

from .attentions import *  # noqa: F403
from .backbones import *  # noqa: F403
from .layers import *  # noqa: F403
from .necks import *  # noqa: F403
