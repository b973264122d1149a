import os
import subprocess
import sys

import pytest
import torch

from mmlinattn.functional import newton_pinv, threads
from mmlinattn.functional.softmax_free import gaussian_kernel

pytestmark = pytest.mark.modern


def test_one_thread_ends_where_it_began():
    a = torch.eye(2)
    before = torch.get_num_threads()
    with threads.one_thread(a, below=3):
        with threads.one_thread(a, below=3):
            inside = torch.get_num_threads()
        assert torch.get_num_threads() == inside
    assert torch.get_num_threads() == before


@pytest.mark.parametrize('device, below', [('meta', 3), ('cpu', 2)])
def test_others_keep_their_threads(device, below):
    with threads.one_thread(torch.eye(2, device=device), below) as entered:
        assert entered is None


def test_without_the_library(monkeypatch):
    monkeypatch.setattr(threads, '_library', lambda: None)
    with threads.one_thread(torch.eye(2), below=3) as entered:
        assert entered is None


@pytest.mark.skipif(sys.platform != 'linux', reason='knows the library on Linux')
@pytest.mark.parametrize('by_torch', (False, True))
def test_work_inside_takes_one_thread(by_torch):
    """CPU time of all threads is then that of the calling one."""
    code = f"""
import os
import torch
from mmlinattn.functional.threads import one_thread
if {by_torch}:
    torch.set_num_threads(4)
a = torch.randn(500, 500)
with one_thread(a, below=640):
    assert torch.get_num_threads() == 1
    torch.linalg.eigh(a @ a.mT)
assert torch.get_num_threads() > 1  # as MKL has it, no more than cores
print(len(os.listdir('/proc/self/task')))
torch.linalg.eigh(a @ a.mT)
print(len(os.listdir('/proc/self/task')))
"""
    env = dict(os.environ, OMP_NUM_THREADS='4', OPENBLAS_NUM_THREADS='1')
    done = subprocess.run(
        [sys.executable, '-c', code], env=env, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    inside, outside = map(int, done.stdout.split())
    assert inside < outside


def test_same_inverse(monkeypatch):
    q = torch.randn(1, 2, 120, 8)
    a = gaussian_kernel(q)
    capped = newton_pinv(a, 20, q)
    monkeypatch.setattr(threads, '_library', lambda: None)
    torch.testing.assert_close(capped, newton_pinv(a, 20, q), rtol=1e-4, atol=1e-4)
