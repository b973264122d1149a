"""A training step never waits for a GPU, and its shapes never depend on values.

Without a GPU, the meta device stands for one: reading a value of it raises, and a copy
between it and the CPU is one that a GPU would wait for.
"""

import miniature_backbones as battery
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from mmlinattn.registry import MODELS

pytestmark = pytest.mark.modern_full

CASES = {
    **battery.CASES,
    **{
        f'SOFTPlusPlus-{sampler}': dict(battery.CASES['SOFTPlusPlus'], sampler=sampler)
        for sampler in ('pool', 'biased', 'random')
    },
    **{
        f'SwinTransformer-{name}': dict(
            battery.CASES['SwinTransformer'], attention=name
        )
        for name in battery.KINDS['SwinTransformer'].presets
    },
    'Pyramid-others': dict(
        battery.CASES['PyramidTransformer'],
        attention=[
            dict(type='LinformerAttention', sr_ratio=4),
            dict(type='NystromAttention', num_landmarks=16),
            dict(type='PerformerAttention'),
            dict(type='SoftmaxAttention', lepe=True),
        ],
    ),
}
# Operations that a GPU's host waits in; those that read a value raise by themselves.
WAITING = ('_linalg_eigh', 'linalg_solve_ex', '_linalg_svd')


class Waits(TorchDispatchMode):
    """Collects the operations that a GPU's host would wait in."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        checks = name == 'linalg_cholesky_ex' and (kwargs or {}).get('check_errors')
        if name in WAITING or checks:
            self.names.append(name)
        elif name in ('_to_copy', 'copy_'):
            devices = {
                x.device.type
                for x in tree_flatten((args, out))[0]
                if isinstance(x, torch.Tensor)
            }
            if len(devices) > 1:
                self.names.append(f'{name} between devices')
        elif name in ('index', 'index_put', 'index_put_'):
            indices = [x for x in tree_flatten(args[1])[0] if x is not None]
            if any(x.dtype in (torch.bool, torch.uint8) for x in indices):
                self.names.append(f'{name} by a mask')
        return out


@pytest.mark.parametrize('name', CASES)
def test_no_value_is_read(name):
    """In a training step and a prediction; the build is left out."""
    model = MODELS.build({**CASES[name], 'drop_path_rate': 0.1})
    model = model.to('meta').train()
    x = torch.randn(2, 3, 65, 97, device='meta')
    with Waits() as waits:
        outs = model(x)
        sum(out.sum() for out in outs).backward()
        with torch.no_grad():
            model.eval()(x)
    assert not waits.names


@pytest.mark.gpu
@pytest.mark.parametrize('name', CASES)
def test_step_in_a_cuda_graph(name, monkeypatch):
    """Captured and replayed, gradients are those of the same step without a graph.

    Capture forbids more than waiting: copies from pageable memory, numbers from a
    generator that it does not know, and memory whose size depends on values.
    """
    if not torch.cuda.is_available():
        pytest.skip('needs a GPU')
    # of 11 bits, where each algorithm rounds otherwise
    monkeypatch.setattr(torch.backends.cudnn, 'allow_tf32', False)
    model = MODELS.build(dict(CASES[name])).cuda().train()
    x = torch.randn(2, 3, 65, 97, device='cuda')
    buffers = [buffer.clone() for buffer in model.buffers()]

    def step():
        model.zero_grad(set_to_none=True)
        sum(out.sum() for out in model(x)).backward()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # compiles kernels, makes workspaces
            step()
    torch.cuda.current_stream().wait_stream(stream)
    # running statistics and landmarks drawn at random go on from the same start
    for buffer, start in zip(model.buffers(), buffers):
        buffer.copy_(start)
    torch.cuda.manual_seed(0)
    step()
    expected = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for buffer, start in zip(model.buffers(), buffers):
        buffer.copy_(start)
    torch.cuda.manual_seed(0)
    graph.replay()
    torch.cuda.synchronize()
    results = [p.grad for p in model.parameters() if p.grad is not None]
    for result, right in zip(results, expected):
        torch.testing.assert_close(result, right, rtol=1e-3, atol=1e-4)
