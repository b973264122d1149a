"""Quick reading of many configs."""

import copy
import os.path as osp
from contextlib import contextmanager
from functools import lru_cache

from mmengine.config import Config


@contextmanager
def bases_read_once():
    """Makes loading many configs quick while no file changes.

    MMEngine reads all bases of every config again, and for a base of another package
    all its metafiles. Inside this context it reads a file once.
    """
    read, find = Config._file2dict, Config._get_cfg_path
    read_once, find_once = lru_cache(maxsize=None)(read), lru_cache(maxsize=None)(find)

    def read_copy(filename, *args, **kwargs):
        path = osp.abspath(osp.expanduser(filename))
        return copy.deepcopy(read_once(path, *args, **kwargs))

    def find_path(cfg_path, filename):
        # a path of another package does not depend on the file that asks
        if '::' in cfg_path:
            return find_once(cfg_path, None)
        return find(cfg_path, filename)

    Config._file2dict = staticmethod(read_copy)
    Config._get_cfg_path = staticmethod(find_path)
    try:
        yield
    finally:
        Config._file2dict = staticmethod(read)
        Config._get_cfg_path = staticmethod(find)
