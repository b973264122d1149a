"""The version, kept apart so that setup.py reads it without an import."""

__version__ = '0.2.0'
version_info = tuple(int(part) for part in __version__.split('.'))
