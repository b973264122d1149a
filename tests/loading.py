"""Loads files that are no modules of a package."""

import importlib.util


def load_module(path):
    """A file as a module, named as the file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
