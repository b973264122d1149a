"""The parts of the plan, in order of value."""

from functools import partial

from . import gpu_tests, gradients, graphs, stability, suites
from .suites import against, number
from .unit import Part

PARTS = {
    part.name: part
    for part in (
        Part('tests', 'tests marked gpu', gpu_tests.units, gpu_tests.headline),
        Part(
            'gradients',
            'every function and its gradients 1,000 times: bitwise the same, and right',
            gradients.units,
            gradients.headline,
        ),
        Part('ops', 'functions by themselves', suites.ops, number),
        Part('solvers', 'ways to apply the inverse', suites.solvers, number),
        Part(
            'backbones',
            'SOFT beside its official form, SOFT++ beside PVTv2 and Swin',
            suites.backbones,
            partial(against, 'SOFT++-T', 'PVTv2-B1', 'forward'),
        ),
        Part(
            'attentions',
            'Swin-T and CSWin-T with every attention, forward',
            suites.attentions,
            partial(against, 'elfatt', 'global', 'forward'),
        ),
        Part(
            'elfatt',
            'ELFATT beside FlashAttention softmax in Swin-T at 800×1280',
            suites.elfatt,
            partial(against, 'ELFATT', 'softmax', 'forward'),
        ),
        Part(
            'training',
            'training steps of SOFT++-T beside PVTv2-B1 and Swin-T',
            suites.training,
            partial(against, 'SOFT++-T', 'PVTv2-B1', 'training step'),
        ),
        Part(
            'stability',
            '200 steps of a detector with dense heads and masks in bfloat16',
            stability.units,
            stability.headline,
        ),
        Part('memory', 'memory against the number of tokens', suites.memory, number),
        Part(
            'graphs',
            'waits of a training step, and its CUDA graph',
            graphs.units,
            graphs.headline,
        ),
    )
}
PLANS = {'gpu': tuple(PARTS)}
