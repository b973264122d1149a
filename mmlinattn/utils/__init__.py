from mmlinattn import registry as registry  # says first which versions do not fit

from .config import bases_read_once, check_file, load_config, register_config_scopes

__all__ = ['bases_read_once', 'check_file', 'load_config', 'register_config_scopes']
