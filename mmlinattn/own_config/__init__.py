"""Writes the config that trains one of our models on a user's data set.

:func:`write_config` is for programs. ``tasks`` has what all configs of a task share,
``bases`` finds the config to inherit, ``heads`` what in its model depends on the data,
``sizes`` and ``photo_limits`` choose the sizes of photos, batches and predictions,
``write`` puts the templates together, ``whole`` the files in place, and ``files`` does
both.
"""

from .files import check_paths, folder_of_lists, put_in_place, write_config
from .tasks import TASKS
from .whole import whole_config
from .write import Choices, Devices, NewConfig, make_config

__all__ = [
    'TASKS',
    'Choices',
    'Devices',
    'NewConfig',
    'check_paths',
    'folder_of_lists',
    'make_config',
    'put_in_place',
    'whole_config',
    'write_config',
]
