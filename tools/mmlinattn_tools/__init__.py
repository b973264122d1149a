"""Code that the command-line tools share; the package itself does not need it."""

import sys
from importlib.util import find_spec

if not all(map(find_spec, ('cv2', 'mmengine', 'torch'))):
    print(
        f'{sys.executable} lacks the libraries: take the Python of the environment, '
        '.venv/bin/python after make env, or see docs/start.md',
        file=sys.stderr,
    )
    sys.exit(2)
if not find_spec('mmlinattn'):
    print('mmlinattn is not installed: pip install -e .', file=sys.stderr)
    sys.exit(2)
