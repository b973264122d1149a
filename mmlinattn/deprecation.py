"""Names that moved, for one version."""

import importlib
import warnings


def moved_module(old, new, until):
    """``__getattr__`` of a module whose contents are elsewhere now.

    Args:
        old (str): Name of the module that it was.
        new (str): Name of the module that it is.
        until (str): Version that the old name goes with.

    Returns:
        callable: Finds a name in the new module, with a DeprecationWarning.
    """

    def find(name):
        if name.startswith('__'):
            raise AttributeError(name)
        value = getattr(importlib.import_module(new), name)
        warnings.warn(
            f'{old}.{name} moved to {new}.{name}; the old name goes with version '
            f'{until}',
            DeprecationWarning,
            stacklevel=2,
        )
        return value

    return find
