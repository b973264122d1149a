"""The interpreter takes what the compiler refuses; compiling needs no GPU."""

import importlib.util
import os
from pathlib import Path

import pytest
import torch

pytest.importorskip('triton', minversion='3.4')
gaussian = pytest.importorskip('mmlinattn.functional.kernels.gaussian')

pytestmark = [
    pytest.mark.modern,
    pytest.mark.skipif(
        os.environ.get('TRITON_INTERPRET') == '1', reason='nothing is compiled'
    ),
]


def _hazards():
    path = Path(__file__).with_name('hazards.py')
    spec = importlib.util.spec_from_file_location('hazards', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize('capability', [80, 90])
@pytest.mark.parametrize(
    'dtype, dim, want_out, want_grad',
    [
        (torch.float32, 32, True, False),
        (torch.float32, 32, False, True),
        (torch.bfloat16, 7, True, True),
        (torch.bfloat16, 32, False, True),
        (torch.float32, 128, True, True),
    ],
)
def test_gaussian(dtype, dim, want_out, want_grad, capability, tmp_path, monkeypatch):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    monkeypatch.setenv('TRITON_CACHE_DIR', str(tmp_path))

    kernel = gaussian._sweep_kernel
    padded = gaussian._padded(dim)
    config = gaussian._block_config(padded, 1000, dtype, capability)
    options = {x: config.pop(x) for x in ('num_warps', 'num_stages')}
    constants = dict(
        DIM=dim,
        VALUE_DIM=dim,
        PADDED_DIM=padded,
        PADDED_VALUE_DIM=padded,
        DTYPE=gaussian._TRITON_DTYPES[dtype],
        WANT_OUT=want_out,
        WANT_GRAD=want_grad,
        **config,
    )
    types = dict.fromkeys(constants, 'constexpr')
    types.update(dict.fromkeys(('rows', 'cols', 'w', 'u'), f'*{constants["DTYPE"]}'))
    types.update(dict.fromkeys(('out', 'grad'), '*fp32'))
    signature = {name: types.get(name, 'i32') for name in kernel.arg_names}

    # as the launcher finds them: aligned pointers, strides in multiples of 16
    counts = ('heads', 'num_rows', 'num_cols', 'chunk')
    aligned = {
        (i,): [['tt.divisibility', 16]]
        for i, (name, type_) in enumerate(signature.items())
        if type_ != 'constexpr' and name not in counts
    }
    compiled = compile(
        ASTSource(kernel, signature, constants, aligned),
        target=GPUTarget('cuda', capability, 32),
        options=options,
    )
    # on tensor cores, float32 with its small parts too; within the shared
    # memory of the smallest GPUs
    assert 'mma' in compiled.asm['ptx']
    assert ('tf32' in compiled.asm['ptx']) == (dtype == torch.float32)
    assert compiled.metadata.shared <= 99 * 1024
    assert not _hazards().overwritten_operands(compiled.asm['ptx'])
