"""What a process does before it runs a command."""

import os
import sys
from importlib.util import find_spec

from mmlinattn import check_numpy, check_versions, ops

NEEDED = ('cv2', 'mmengine', 'torch')


def prepare_process() -> None:
    """Let threads of torch sleep while they wait, and mmcv use our operators. It
    imports no library.

    Threads that wait for each other without sleeping take the cores of other programs,
    and a step beside them takes twice as long. The setting has an effect before torch
    is imported.
    """
    os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')
    ops.enable()


def check_libraries() -> None:
    """End the program with one line if a library is missing, or has another version
    than commands need."""
    missing = [name for name in NEEDED if not find_spec(name)]
    try:
        if missing:
            raise ImportError(
                f'{sys.executable} lacks {", ".join(missing)}: take the Python of the '
                'environment, .venv/bin/python after make env, or pip install '
                "'mmlinattn[all]' (docs/start.md)"
            )
        check_versions()
        check_numpy()
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
