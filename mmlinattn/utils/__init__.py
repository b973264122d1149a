from mmlinattn import registry as registry  # says first which versions do not fit

from .config import check_file, load_config, register_config_scopes

__all__ = ['check_file', 'load_config', 'register_config_scopes']
