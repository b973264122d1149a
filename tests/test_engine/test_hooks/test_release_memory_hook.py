"""Free memory returns to the system, and used memory stays."""

import ctypes
from importlib import import_module

import pytest
from loading import ROOT

from mmlinattn.engine import ReleaseMemoryHook

SIZE = 100_000  # bytes; larger pieces may be the system's own, which return at once


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), 'malloc_trim'), reason='needs glibc')
def test_gaps_between_what_is_kept_return_to_the_system(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    resident = import_module('side_by_side.measuring').resident
    pieces = [bytes([i % 251]) * SIZE for i in range(600)]
    kept = pieces[::2]
    before = resident('VmRSS')
    pieces.clear()
    assert resident('VmRSS') > before - 0.2 * 300 * SIZE
    ReleaseMemoryHook().after_val(None)
    assert resident('VmRSS') < before - 0.8 * 300 * SIZE
    assert all(x == bytes([2 * i % 251]) * SIZE for i, x in enumerate(kept))
