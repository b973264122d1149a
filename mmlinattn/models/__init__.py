from .attentions import *  # noqa: F401,F403
from .backbones import *  # noqa: F401,F403
