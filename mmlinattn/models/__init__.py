from mmlinattn import registry as registry  # says first which versions do not fit

from .attentions import *  # noqa: F403
from .backbones import *  # noqa: F403
from .layers import *  # noqa: F403
from .necks import *  # noqa: F403
