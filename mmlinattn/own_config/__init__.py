"""Writes the config that trains one of our models on a user's data set.

:func:`write_config` is for programs. ``tasks`` has what all configs of a task share,
``starts`` chooses what a training starts from and ``starting`` writes its lines,
``bases`` finds the config to inherit, ``heads`` what in its model depends on the data,
``sizes`` and ``photo_limits`` choose the sizes of photos, batches and predictions,
``write`` puts the templates together, ``whole`` the files in place, and ``files`` does
both.
"""

from .bases import tasks_with
from .devices import Devices
from .files import check_paths, folder_of_lists, put_in_place, write_config
from .starting import pretrained_of_others
from .starts import NAMES
from .tasks import TASKS
from .whole import whole_config
from .write import Choices, NewConfig, make_config

__all__ = [
    'NAMES',
    'TASKS',
    'Choices',
    'Devices',
    'NewConfig',
    'check_paths',
    'folder_of_lists',
    'make_config',
    'pretrained_of_others',
    'put_in_place',
    'tasks_with',
    'whole_config',
    'write_config',
]
