"""Time and memory of every attention against the number of tokens."""

import math
import statistics
from argparse import Namespace
from functools import partial

import torch
from rich.progress import track
from side_by_side.cases import image, place
from side_by_side.memory import peak_bytes
from side_by_side.models import LINEAR, SOFTMAX, TokenModel, attention_stack
from side_by_side.plot import Panel
from side_by_side.report import exponent
from side_by_side.timing import measure as take_turns
from side_by_side.timing import timed

from mmlinattn.registry import build_model

from ..claim import Claim, Part, spread, values_of

NUM_LANDMARKS, CHANNELS, HEADS = 49, 64, 2
# The rest of the zoo but class attention, which has a single query. Stripes grow with
# the side of the map.
OTHERS = {
    'talking heads': dict(type='TalkingHeadsAttention'),
    'windows of 7 × 7': dict(type='WindowAttention', window_size=7),
    'stripes of 7': dict(type='CrossShapedWindowAttention', stripe_width=7),
}
ALL = [*SOFTMAX, *LINEAR, *OTHERS]
WRITE_MATRIX = ('softmax, unfused', 'talking heads')
OWN = ('SOFT', 'SOFT++', 'ELFATT')
UNIT = 'attentions'


def measure(unit, context):
    """Seconds and bytes of a forward pass of each attention, by N.

    All attentions take turns in each round at one N.
    """
    seconds, memory = {}, {}
    args = Namespace(device=context.device, dtype='float32')
    for side in context.settings['sides']:
        shape = (1, CHANNELS, side, side)
        inputs, warm_up = (
            place(image(x, torch.float32), context.device)
            for x in (shape, (1, CHANNELS, 14, 14))
        )
        runs = {}
        for name in ALL:
            if name in WRITE_MATRIX and side > context.settings['most_unfused']:
                continue
            torch.manual_seed(context.seed)
            module = build(name, shape).to(context.device)
            timed(module, warm_up, 'forward', args)[0]()
            runs[name] = timed(module, inputs, 'forward', args)
            peak = peak_bytes(runs[name][0], context.device)
            if peak:
                memory.setdefault(name, {})[side**2] = peak
        found = take_turns(
            runs,
            dict.fromkeys(runs, context.settings['rounds']),
            partial(track, description=f'N = {side**2}'),
        )
        for name, times in found.items():
            seconds.setdefault(name, {})[side**2] = statistics.median(times.values())
    return dict(seconds=seconds, memory=memory)


def build(name, shape):
    """One attention of the zoo on a map."""
    if name not in OTHERS:
        return attention_stack(name, shape, NUM_LANDMARKS, HEADS)()
    return TokenModel([build_model(OTHERS[name], embed_dims=shape[1], num_heads=HEADS)])


def power(of_seed, name, key='seconds'):
    """Exponent of the power of N that fits best, nan where it is not known."""
    values = of_seed[UNIT][key].get(name, {})  # memory can't be measured everywhere
    found = exponent([(int(tokens), value) for tokens, value in values.items()])
    return math.nan if found is None else found


def tables(runs):
    rows = []
    for name in next(iter(runs.values()))[UNIT]['seconds']:
        times = values_of(runs, UNIT, 'seconds', name)
        largest = max(times[0], key=int)
        powers = [
            spread([power(of_seed, name, key) for of_seed in runs.values()], 2)
            for key in ('seconds', 'memory')
        ]
        milliseconds = spread([1e3 * x[largest] for x in times], 1)
        rows.append([name, *powers, milliseconds, f'{int(largest):,}'])
    titles = ['attention', 'exponent of time', 'exponent of memory']
    caption = 'A forward pass of one attention alone, by the number of tokens N'
    return [(caption, [*titles, 'ms at the largest N', 'which is'], rows)]


def panels(runs):
    found = []
    for key, label, unit in (
        ('seconds', 'time of a forward pass, ms', 1e3),
        ('memory', 'peak memory, MiB', 2**-20),
    ):
        curves = {}
        for name, values in next(iter(runs.values()))[UNIT][key].items():
            xs = sorted(values, key=int)
            seeds = values_of(runs, UNIT, key, name)
            ys = [[unit * of_seed[x] for x in xs] for of_seed in seeds]
            curves[name] = ([int(x) for x in xs], ys)
        found.append(Panel('', 'tokens $N$', label, curves, 'log', 'log'))
    return found


CLAIM = Claim(
    name='cost',
    title='Linear attentions cost linear time and memory',
    claim="SOFT's time and memory grow linearly with the number of tokens N, softmax "
    "attention's with N².",
    paper='SOFT, Figure 1b.',
    setting='One attention alone (64 channels, 2 heads, 49 landmarks, agents or '
    'tokens in a block) on square maps of 784 to 12,544 tokens, float32, with the '
    'timing and memory of `benchmarks/side_by_side`: in each round all attentions '
    'take turns. An exponent is the slope of log time over log N; a seed has its own '
    'weights. Exponents up to 1.1 count as linear, for caches make large maps slower, '
    'and above 1.5 as more than linear.',
    limits='On a CPU nothing is said about GPUs. The number of landmarks is fixed: in '
    'the models, it grows with the image. Whole models are in '
    '[attentions_cpu.md](../docs/benchmarks/attentions_cpu.md).',
    settings=dict(sides=[28, 40, 56, 80, 112], most_unfused=80, rounds=5),
    smoke=dict(sides=[14, 21, 28], rounds=1),
    minutes=2,
    units=lambda settings: [UNIT],
    measure=measure,
    parts=(
        *(
            Part(
                f'1.1 less the exponent of the time of {name}',
                lambda x, name=name: 1.1 - power(x, name),
            )
            for name in OWN
        ),
        *(
            Part(
                f'the same of its memory, {name}',
                lambda x, name=name: 1.1 - power(x, name, 'memory'),
            )
            for name in OWN
        ),
        Part(
            'the exponent of the time of unfused softmax attention, less 1.5',
            lambda x: power(x, 'softmax, unfused') - 1.5,
        ),
        Part(
            'the exponent of its memory, less 1.5',
            lambda x: power(x, 'softmax, unfused', 'memory') - 1.5,
        ),
    ),
    tables=tables,
    panels=panels,
)
