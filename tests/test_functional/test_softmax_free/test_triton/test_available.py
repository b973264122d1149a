import sys
from types import SimpleNamespace

import pytest
import torch

from mmlinattn.functional.softmax_free import triton as kernels
from mmlinattn.functional.softmax_free.triton import available

pytestmark = pytest.mark.modern


@pytest.fixture(autouse=True)
def forget():
    kernels._find_triton.cache_clear()
    yield
    kernels._find_triton.cache_clear()


@pytest.fixture
def install(monkeypatch):
    """Has a version of Triton, or none, in the place of what is installed."""
    monkeypatch.setenv('TRITON_INTERPRET', '1')

    def install(version):
        triton = version and SimpleNamespace(__version__=version)
        monkeypatch.setitem(sys.modules, 'triton', triton)

    return install


@pytest.mark.parametrize(
    'version, fits',
    [('3.0.0', True), ('3.7.1+git', True), ('2.1.0', False), (None, False)],
)
@pytest.mark.filterwarnings('ignore:Triton')
def test_triton(version, fits, install):
    install(version)
    operands = torch.empty(2, 3), torch.empty(2, 128, dtype=torch.bfloat16)
    assert available(*operands) == fits


@pytest.mark.parametrize(
    'version, found', [('2.1.0', '2.1.0'), (None, 'not installed')]
)
def test_one_warning_without_triton_3(version, found, install):
    install(version)
    message = f'Triton is {found}.*torch>=2.4'
    with pytest.warns(UserWarning, match=message) as caught:
        assert not any(available(torch.empty(2, 3)) for _ in range(2))
    assert len(caught) == 1


def test_no_warning_where_kernels_could_not_run(install, recwarn, monkeypatch):
    install(None)
    monkeypatch.delenv('TRITON_INTERPRET')
    assert not available(torch.empty(2, 3))
    assert not recwarn


def test_the_compiler_takes_the_answer_as_constant(monkeypatch):
    pytest.importorskip('triton', minversion='3.0')
    monkeypatch.setenv('TRITON_INTERPRET', '1')

    @torch.compile(fullgraph=True, backend='eager')
    def choose(x):
        return x + 1 if available(x) else x

    assert choose(torch.zeros(2, 3)).eq(1).all()


@pytest.mark.parametrize(
    'x',
    [
        torch.empty(2, 3, dtype=torch.float64),
        torch.empty(2, 129),
        torch.empty(2, 3, device='meta'),
    ],
)
def test_every_operand_must_fit(x, install):
    install('3.0.0')
    assert not available(torch.empty(2, 3), x)


def test_cpu_without_interpreter(install, monkeypatch):
    install('3.0.0')
    monkeypatch.delenv('TRITON_INTERPRET', raising=False)
    assert not available(torch.empty(2, 3))


def test_asking_imports_no_triton(run_python):
    run_python("""
import sys
import torch
from mmlinattn.functional.softmax_free import triton as kernels
before = set(sys.modules)
assert not kernels.available(torch.empty(2, 3))
assert not {m for m in set(sys.modules) - before if 'triton' in m}
assert 'mmlinattn.functional.softmax_free.triton.sweep' not in sys.modules
""")
