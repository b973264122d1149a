"""The interpreter takes what the compiler refuses; compiling needs no GPU."""

import importlib.util
import os
from pathlib import Path

import pytest

pytest.importorskip('triton', minversion='3.4')

pytestmark = [
    pytest.mark.modern,
    pytest.mark.skipif(
        os.environ.get('TRITON_INTERPRET') == '1', reason='nothing is compiled'
    ),
]


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hazards = _load(Path(__file__).with_name('hazards.py'))


@pytest.fixture(scope='module')
def compiled():
    return _load(Path(__file__).parents[4] / 'benchmarks/kernels/compiled.py')


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv('TRITON_CACHE_DIR', str(tmp_path))


# What training calls, the widest heads, and a head of odd width.
@pytest.mark.parametrize('capability', [80, 90])
@pytest.mark.parametrize(
    'operands, dim, value_dim, wanted',
    [
        ('float32', 32, 32, 'out'),
        ('float32', 32, 64, 'both'),
        ('float32', 128, 128, 'grad'),
        ('half', 32, 64, 'both'),
        ('half, float32 tokens', 7, 20, 'grad'),
        ('half, float32 tokens', 128, 128, 'grad'),
        ('half tokens, two halves', 32, 64, 'both'),
    ],
)
def test_sweep(compiled, operands, dim, value_dim, wanted, capability):
    kernel, config = compiled.compile_sweep(
        capability, operands, dim, value_dim, wanted
    )
    ptx = kernel.asm['ptx']
    assert ('wgmma' if capability == 90 else 'mma.sync') in ptx
    # columns are copied while the last ones are multiplied, and not over them
    assert 'cp.async.c' in ptx
    assert not hazards.overwritten_operands(ptx)
    # nothing spilled where it counts, and little elsewhere
    assert compiled.count(kernel, config)['spills'] == 0
    used = compiled.resources(kernel)
    assert used['stack'] <= 64
    # consumer cards run the same kernel with less shared memory
    limit = compiled.SHARED[89 if capability == 80 else capability]
    assert used['shared'] <= limit * 1024


@pytest.mark.parametrize('capability', [80, 90])
def test_inverse(compiled, capability):
    """Parabolas, and products with the most columns."""
    limit = compiled.SHARED[89 if capability == 80 else capability]
    for kernel in (
        compiled.compile_parabola(capability),
        compiled.compile_columns(capability, 1, 128),
        compiled.compile_columns(capability, 2, 128),
    ):
        ptx = kernel.asm['ptx']
        assert ('wgmma' if capability == 90 else 'mma.sync') in ptx
        assert 'cp.async.c' in ptx
        assert not hazards.overwritten_operands(ptx)
        used = compiled.resources(kernel)
        assert used['stack'] == 0
        assert used['shared'] <= limit * 1024


def test_an_overwritten_operand_is_found():
    """One buffer that a copy overwrites under a product that still reads it."""
    product = '{%f1}, {%r1}, %rd1, 1, 1, 1, 1;'
    loop = f"""
        mov.b64 %rd1, 7;
        mov.b32 %r9, 0;
    $L__BB0_2:
        cp.async.wait_group 0;
        wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {product}
        wgmma.commit_group.sync.aligned;
        WAIT
        cp.async.cg.shared.global [%r2], [%rd2], 16;
        add.s32 %r9, %r9, 1;
        @%p1 bra $L__BB0_2;
    """
    assert hazards.overwritten_operands(loop.replace('WAIT', ''))
    waited = loop.replace('WAIT', 'wgmma.wait_group.sync.aligned 0;')
    assert not hazards.overwritten_operands(waited)
    # a place that changes from one iteration to the next
    two_buffers = loop.replace('add.s32 %r9', 'cvt.u64.u32 %rd1, %r9;\n add.s32 %r9')
    assert not hazards.overwritten_operands(two_buffers)
