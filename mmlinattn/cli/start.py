"""Code that the command-line tools share; the package itself does not need it."""

import os
import sys
from importlib.util import find_spec

# Without it, threads that wait for each other take the cores of other programs, and a
# step beside them takes twice as long. It has an effect before torch is imported.
os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')

MISSING = [
    name for name in ('cv2', 'mmengine', 'torch', 'mmlinattn') if not find_spec(name)
]
if MISSING:
    print(
        f'{sys.executable} lacks {", ".join(MISSING)}: take the Python of the '
        'environment, .venv/bin/python after make env, or pip install -e . '
        '(docs/start.md)',
        file=sys.stderr,
    )
    sys.exit(2)

from mmlinattn import check_numpy, check_versions, ops

try:
    check_versions()
    check_numpy()
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(2)

# here, so that workers of data loaders that are spawned have them, too
ops.enable()
