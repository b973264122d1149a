"""Writes the config that trains one of our models on a user's data set.

``tasks`` has what all configs of a task share, ``bases`` finds the config to inherit,
``heads`` what in its model depends on the data, ``sizes`` chooses the sizes of photos
and batches, ``write`` puts the templates together, and ``whole`` the files in place.
"""

from .tasks import TASKS
from .whole import whole_config
from .write import Choices, Devices, NewConfig, write_config

__all__ = ['TASKS', 'Choices', 'Devices', 'NewConfig', 'whole_config', 'write_config']
