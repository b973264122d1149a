import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.modern


@pytest.mark.parametrize('name', ['sweep', 'inverse'])
def test_kernels_in_the_interpreter(name):
    """Runs a file of this folder again, with Triton as an interpreter.

    Triton decides when it is imported, and torch imports it when it likes:
    only a process of its own is sure to see the variable first. In this one it
    would also turn every attention on the CPU into interpreted kernels.
    """
    pytest.importorskip('triton', minversion='3.0')
    file = Path(__file__).with_name(f'test_{name}.py')
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', file],
        env=dict(os.environ, TRITON_INTERPRET='1'),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'skipped' not in done.stdout, done.stdout
