import pytest

from mmlinattn.configs import library_config

pytestmark = pytest.mark.modern


def test_config_of_a_library_that_is_not_there():
    with pytest.raises(ModuleNotFoundError, match='needs mmnothing, which is not'):
        library_config('mmnothing::a.py')
    with pytest.raises(FileNotFoundError, match='no_such.py'):
        library_config('mmdet::no_such.py')
