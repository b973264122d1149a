"""A training step never waits for a GPU, and its shapes never depend on values.

Without a GPU, the meta device stands for one: reading a value of it raises, and a copy
between it and the CPU is one that a GPU would wait for.
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from mmlinattn.registry import MODELS

pytestmark = pytest.mark.modern

PYRAMID = dict(embed_dims=[8, 16, 24, 32], depths=[1, 2, 1, 1], num_heads=[1, 2, 3, 4])
SWIN = dict(embed_dims=8, depths=[2, 1, 2, 1], num_heads=[1, 2, 4, 4])
PLAIN = dict(embed_dims=24, num_layers=2, num_heads=3)
ATTENTIONS = ('local', 'global', 'elfatt', 'efficient', 'agent', 'flatten')
CASES = {
    'SOFT': dict(type='SOFT', arch=PYRAMID, img_size=64),
    'SOFTPlusPlus': dict(type='SOFTPlusPlus', arch=PYRAMID),
    'SOFTPlusPlus-no-cls': dict(
        type='SOFTPlusPlus', arch=PYRAMID, sampling_ratios=(8, 4, 2, 2)
    ),
    **{
        f'SOFTPlusPlus-{sampler}': dict(
            type='SOFTPlusPlus', arch=PYRAMID, sampler=sampler
        )
        for sampler in ('pool', 'biased', 'random')
    },
    'Pyramid': dict(
        type='PyramidTransformer',
        arch=PYRAMID,
        attention=[
            dict(type='LinformerAttention', sr_ratio=4),
            dict(type='NystromAttention', num_landmarks=16),
            dict(type='PerformerAttention'),
            dict(type='SoftmaxAttention', lepe=True),
        ],
    ),
    **{
        f'Swin-{name}': dict(type='SwinTransformer', arch=SWIN, attention=name)
        for name in ATTENTIONS
    },
    **{
        f'CSWin-{name}': dict(
            type='CSWinTransformer',
            arch=dict(PYRAMID, num_heads=[2, 2, 2, 4]),
            attention=name,
        )
        for name in ('local', 'elfatt')
    },
    'ViT': dict(type='VisionTransformer', arch=PLAIN, img_size=64, patch_size=8),
    'CaiT': dict(
        type='CaiT', arch=dict(PLAIN, num_class_layers=1), img_size=64, patch_size=8
    ),
}
CASES.update(
    {
        f'{name}-scaled': dict(CASES[name], attn_scale=True, feat_scale=True)
        for name in ('SOFTPlusPlus', 'Swin-local', 'ViT', 'CaiT')
    }
)
# Operations whose result or shape the host has to know.
WAITING = (
    '_local_scalar_dense',
    'is_nonzero',
    'nonzero',
    'masked_select',
    'unique',
    '_unique2',
    'equal',
    'bincount',
    'repeat_interleave.Tensor',
    'linalg_eigh',
    '_linalg_eigh',
    'linalg_cholesky_ex',
    'linalg_solve_ex',
    '_linalg_svd',
)


class Waits(TorchDispatchMode):
    """Collects the operations that a GPU's host would wait in."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in WAITING or f'{name}.{func._overloadname}' in WAITING:
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


def waits_of_step(name, device, **options):
    """Names of the waiting operations of a training step, its build left out."""
    model = MODELS.build({**CASES[name], 'drop_path_rate': 0.1, **options})
    model = model.to(device).train()
    x = torch.randn(2, 3, 65, 97, device=device)
    with Waits() as waits:
        outs = model(x)
        sum(out.sum() for out in outs).backward()
    return waits.names


@pytest.mark.parametrize('name', CASES)
def test_no_value_is_read(name):
    waits = waits_of_step(name, 'meta')
    assert not waits


@pytest.mark.gpu
@pytest.mark.parametrize('name', CASES)
def test_step_in_a_cuda_graph(name):
    """Captured and replayed, gradients are those of the same step without a graph.

    Capture forbids more than waiting: copies from pageable memory, numbers from a
    generator that it does not know, and memory whose size depends on values.
    """
    if not torch.cuda.is_available():
        pytest.skip('needs a GPU')
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


@pytest.mark.parametrize('name', CASES)
def test_waits_of_a_step(name, monkeypatch):
    """With values, on a CPU that is taken for a GPU."""
    monkeypatch.setattr(torch.Tensor, 'is_cpu', False)
    waits = waits_of_step(name, 'cpu')
    assert len(waits) <= 1, waits


@pytest.mark.skipif(
    torch.__version__.startswith('2.1.'), reason='checkpoints no meta tensors'
)
@pytest.mark.parametrize('name', ('SOFTPlusPlus', 'Swin-elfatt', 'ViT'))
def test_checkpointing_waits_no_more(name):
    assert not waits_of_step(name, 'meta', with_cp=True)


def test_waits_are_seen():
    """The counter itself, on what would make a host wait."""
    x = torch.rand(5)
    with Waits() as waits:
        assert x.sum().item() > 0
        x[x > 0.5]
        (x > 0.5).nonzero()
        torch.linalg.eigh(torch.eye(3))
        x.to('meta')
        x[torch.tensor([0, 1])]
    found = set(waits.names)
    assert {'_local_scalar_dense', 'index by a mask', 'nonzero'} <= found
    assert {'_linalg_eigh', '_to_copy between devices'} <= found
    assert 'index' not in found
