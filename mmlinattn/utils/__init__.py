from .config import check_data, check_file, load_config, register_config_scopes

__all__ = ['check_data', 'check_file', 'load_config', 'register_config_scopes']
