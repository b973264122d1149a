"""What becomes of freed memory."""

import platform

import pytest

FAULTS = """
import resource
from mmlinattn.utils import heap

{setting}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

b'x' * (48 << 20)
before = faults()
for _ in range(4):
    b'x' * (48 << 20)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='another C library')
def test_freed_memory_is_kept_unless_a_person_decides(run_python):
    """Kept pages need not be given out anew."""

    def faults(*lines):
        return int(run_python(FAULTS.format(setting='\n'.join(lines))))

    by_default = faults()
    assert faults('assert heap.keep_freed_memory()') < by_default / 2
    set_by_a_person = "import os; os.environ['MALLOC_TRIM_THRESHOLD_'] = '1'"
    unchanged = faults(set_by_a_person, 'assert not heap.keep_freed_memory()')
    assert unchanged > by_default / 2
