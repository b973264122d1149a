"""Whether a training step ever waits for the GPU, and fits a CUDA graph."""

import time
import warnings
from functools import partial

import torch

from ..cases import natural_map
from ..models import backbone
from ..timing import forward_backward, gradient
from .measuring import first_line
from .unit import LeftOut, Settings, Unit

MODELS = {
    'SOFT++-T': dict(type='SOFTPlusPlus', arch='tiny'),
    'SOFT-T': dict(type='SOFT', arch='tiny'),
    'Swin-T': dict(type='SwinTransformer', arch='tiny'),
    'Swin-T with ELFATT': dict(type='SwinTransformer', arch='tiny', attention='elfatt'),
    'CSWin-T with ELFATT': dict(
        type='CSWinTransformer', arch='t24181', attention='elfatt'
    ),
    'DeiT-S': dict(type='VisionTransformer', arch='deit-small'),
    'CaiT-XXS24': dict(type='CaiT', arch='xxs24'),
}
REPLAYS = 10


def units(settings: Settings):
    """A unit for every backbone."""
    return [
        Unit(name, partial(check, name, cfg, settings)) for name, cfg in MODELS.items()
    ]


def check(name, cfg, settings: Settings):
    """Counts waits of one training step, and captures it.

    Returns:
        list[dict]: One row: waits, whether a graph's forward pass and gradients
        equal those of the same step without it, and the seconds of both.

    Raises:
        LeftOut: Without a GPU.
    """
    device = settings.device
    torch.manual_seed(0)
    model = backbone(**cfg, drop_path_rate=0.0)().to(device).train()
    x = natural_map(settings.pick((2, 3, 512, 512), (2, 3, 64, 64))).to(device)
    step = partial(forward_backward, model, (x,))
    step()
    if device.type != 'cuda':
        raise LeftOut('needs a GPU; without one a test counts what would wait')
    row = dict(model=name, shape=list(x.shape), waits=waits(step))
    if row['waits'] > 1:
        row['problem'] = f'{row["waits"]} waits a step'
    try:
        row.update(captured(model, step, device))
    except RuntimeError as error:
        row['captured'] = False
        row['problem'] = f'not captured: {first_line(error)}'
        torch.cuda.synchronize(device)  # raises where nothing more can run
    gradient.cache_clear()
    return [row]


def waits(step):
    """Operations of a step that wait for the GPU, as torch itself tells them."""
    torch.cuda.set_sync_debug_mode('warn')
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            step()
    finally:
        torch.cuda.set_sync_debug_mode('default')
    return sum('synchroniz' in str(warning.message) for warning in caught)


def captured(model, step, device):
    """Captures a step, replays it, and compares gradients with the step's own."""
    params = [p for p in model.parameters() if p.requires_grad]
    buffers = {name: x.clone() for name, x in model.named_buffers()}

    def restore():
        # running statistics go on from the same start
        for name, x in model.named_buffers():
            x.copy_(buffers[name])

    def gradients():
        return [None if p.grad is None else p.grad.clone() for p in params]

    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(3):
            model.zero_grad(set_to_none=True)
            step()
    torch.cuda.current_stream(device).wait_stream(stream)
    restore()
    model.zero_grad(set_to_none=True)
    step()
    wanted = gradients()
    eager = seconds_of(lambda: (model.zero_grad(set_to_none=True), step()), device)
    model.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    restore()
    graph.replay()
    torch.cuda.synchronize(device)
    found = gradients()
    equal = all(
        (a is None and b is None) or torch.allclose(a, b, rtol=1e-3, atol=1e-5)
        for a, b in zip(found, wanted)
    )
    result = dict(
        captured=True,
        equal=equal,
        eager_seconds=eager,
        graph_seconds=seconds_of(graph.replay, device),
    )
    if not equal:
        result['problem'] = "the graph's gradients are not the step's"
    return result


def seconds_of(function, device):
    """Mean seconds of a function."""
    torch.cuda.synchronize(device)
    start = time.perf_counter()
    for _ in range(REPLAYS):
        function()
    torch.cuda.synchronize(device)
    return (time.perf_counter() - start) / REPLAYS


def headline(rows):
    good = sum(bool(row.get('captured') and row.get('equal')) for row in rows)
    most = max(row['waits'] for row in rows)
    return f'{good} of {len(rows)} captured and equal, at most {most} waits a step'
