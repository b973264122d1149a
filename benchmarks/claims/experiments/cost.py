"""Time and memory of every attention against the number of tokens."""

import math
import statistics
from functools import partial

import torch
from side_by_side.cases import Within, image, place
from side_by_side.command import timed
from side_by_side.memory import peak_bytes
from side_by_side.models import (
    LINEAR,
    SOFTMAX,
    TokenModel,
    attention_stack,
    backbone,
    unfused,
)
from side_by_side.report import exponent
from side_by_side.timing import measure as take_turns

from mmlinattn.registry import build_model

from ..claim import Claim, Part, spread, values_of
from ..plots import Panel, plot_lines

NUM_LANDMARKS, CHANNELS, HEADS = 49, 64, 2
# Their share of the models' speed-up is measured on whole Swin-T's.
MODELS = 'Swin-T'
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


def units(settings):
    return ['attentions', MODELS]


def measure(unit, context):
    if unit == MODELS:
        return measure_models(context)
    return measure_attentions(context)


def measure_attentions(context):
    """Seconds and bytes of a forward pass of each attention, by N.

    All attentions take turns in each round at one N.
    """
    seconds, memory = {}, {}
    sides = context.settings['sides']
    for side in sides:
        shape = (1, CHANNELS, side, side)
        runs, fast = {}, (1, CHANNELS, 14, 14)
        inputs, warm_up = (
            place(image(x, torch.float32), context.device) for x in (shape, fast)
        )
        for name in ALL:
            if name in WRITE_MATRIX and side > context.settings['most_unfused']:
                continue
            torch.manual_seed(context.seed)
            module = build(name, shape).to(context.device).eval()
            arguments = (module, warm_up, 'forward', context.device, torch.float32)
            timed(*arguments)[0]()
            runs[name] = timed(module, inputs, 'forward', context.device, torch.float32)
            peak = peak_bytes(runs[name][0], context.device)
            if peak:
                memory.setdefault(name, {})[side**2] = peak
        found = take_turns(
            runs,
            dict.fromkeys(runs, context.settings['rounds']),
            lambda rounds, side=side: context.track(rounds, f'N = {side**2}'),
        )
        for name, times in found.items():
            seconds.setdefault(name, {})[side**2] = statistics.median(times.values())
    return dict(
        seconds=seconds,
        memory=memory,
        fits={
            name: dict(
                seconds=fit(seconds[name]),
                memory=fit(memory[name]) if name in memory else None,
            )
            for name in seconds
        },
    )


def build(name, shape):
    """One attention of the zoo on a map."""
    if name not in OTHERS:
        return attention_stack(name, shape, NUM_LANDMARKS, HEADS)()
    cfg = OTHERS[name]
    return TokenModel([build_model(cfg, embed_dims=shape[1], num_heads=HEADS)])


def fit(values):
    """Exponent of the power of N that fits best, and its 95 % interval."""
    points = sorted(values.items())
    slope = exponent(points)
    if slope is None or len(points) < 3:
        return dict(exponent=slope, low=None, high=None)
    xs, ys = ([math.log(x) for x in axis] for axis in zip(*points))
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys))
    error = (rest / (len(xs) - 2) / sum((x - mean_x) ** 2 for x in xs)) ** 0.5
    # two-sided 95 % quantiles of Student's distribution
    quantile = (12.706, 4.303, 3.182, 2.776)[min(len(xs) - 3, 3)]
    return dict(
        exponent=slope, low=slope - quantile * error, high=slope + quantile * error
    )


def measure_models(context):
    """Seconds of a forward pass of Swin-T with ELFATT and with softmax attention."""
    found = {}
    arch = context.settings['arch']
    for side in context.settings['images']:
        inputs = place(image((1, 3, side, side), torch.float32), context.device)
        runs = {}
        for name, attention in (('ELFATT', 'elfatt'), ('softmax', 'global')):
            torch.manual_seed(context.seed)
            model = backbone(type='SwinTransformer', arch=arch, attention=attention)()
            if name == 'softmax':
                model = Within(model, unfused)
            model = model.to(context.device).eval()
            runs[name] = timed(model, inputs, 'forward', context.device, torch.float32)
            runs[name][0]()
        times = take_turns(
            runs,
            dict.fromkeys(runs, context.settings['model_rounds']),
            partial(context.track, description=f'{side} pixels'),
        )
        for name, values in times.items():
            median = statistics.median(values.values())
            found.setdefault(name, {})[str(side)] = median
    return dict(models=found)


def speedup(numbers, side):
    return numbers['models']['softmax'][side] / numbers['models']['ELFATT'][side]


def largest(numbers):
    return max(numbers['models']['ELFATT'], key=int)


def faster(of_seed):
    """At the largest image."""
    numbers = of_seed[MODELS]
    return speedup(numbers, largest(numbers))


def too_small(runs, effect):
    """Below the paper's sizes, a ratio that is too low tells nothing."""
    if effect > 4:
        return None
    side = int(largest(next(iter(runs.values()))[MODELS]))
    return f'{side} × {side} pixels, the paper has 800 × 1280 or more'


def power(of_seed, name, key='seconds'):
    found = of_seed['attentions']['fits'][name][key]
    if found is None or found['exponent'] is None:
        return math.nan  # memory can't be measured everywhere
    return found['exponent']


def tables(runs):
    rows = []
    for name in next(iter(runs.values()))['attentions']['fits']:
        cells = [name]
        for key in ('seconds', 'memory'):
            fits = values_of(runs, 'attentions', 'fits', name, key)
            if None in fits or None in [x['exponent'] for x in fits]:
                cells += ['-', '-']
                continue
            cells.append(spread([x['exponent'] for x in fits], 2))
            cells.append(
                ', '.join(f'{x["low"]:.2f} to {x["high"]:.2f}' for x in fits)
                if None not in [x['low'] for x in fits]
                else '-'
            )
        times = values_of(runs, 'attentions', 'seconds', name)
        cells.append(spread([1e3 * x[max(x, key=int)] for x in times], 1))
        cells.append(f'{int(max(times[0], key=int)):,}')
        rows.append(cells)
    titles = [
        'attention',
        'exponent of time',
        'its 95 % interval, by seed',
        'exponent of memory',
        'its 95 % interval, by seed',
        'ms at the largest N',
        'which is',
    ]
    models = []
    for side in next(iter(runs.values()))[MODELS]['models']['ELFATT']:
        ratios = [speedup(of_seed[MODELS], side) for of_seed in runs.values()]
        models.append([f'{side} × {side}', spread(ratios, 2)])
    return [
        (
            'A forward pass of one attention alone, by the number of tokens N',
            titles,
            rows,
        ),
        (
            'Swin-T with ELFATT over Swin-T with softmax attention that writes its '
            'matrix out',
            ['image', 'times faster'],
            models,
        ),
    ]


def plot(runs, path):
    panels = []
    for key, label, unit in (
        ('seconds', 'time of a forward pass, ms', 1e3),
        ('memory', 'peak memory, MiB', 2**-20),
    ):
        curves = {}
        for name in next(iter(runs.values()))['attentions'][key]:
            seeds = values_of(runs, 'attentions', key, name)
            xs = sorted(seeds[0], key=int)
            if any(x not in of_seed for of_seed in seeds for x in xs):
                continue
            ys = [[unit * of_seed[x] for x in xs] for of_seed in seeds]
            curves[name] = ([int(x) for x in xs], ys)
        panels.append(Panel(label, 'tokens N', label, curves, 'log', 'log'))
    sides = list(next(iter(runs.values()))[MODELS]['models']['ELFATT'])
    ratios = [[speedup(x[MODELS], side) for side in sides] for x in runs.values()]
    panels.append(
        Panel(
            'Swin-T: ELFATT over unfused softmax',
            'image side, pixels',
            'times faster',
            {'Swin-T': ([int(x) for x in sides], ratios)},
            level=4,
        )
    )
    plot_lines(panels, path)


CLAIM = Claim(
    name='cost',
    title='Linear attentions cost linear time and memory',
    claim="SOFT's time and memory grow linearly with the number of tokens N, softmax "
    "attention's with N². ELFATT makes models 4 to 7 times as fast as softmax "
    'attention without fused kernels.',
    paper='SOFT, Figure 1b; ELFATT, abstract and Tables VI and VII: at 800 × 1280 and '
    '512 × 2048 pixels, in mixed precision on a GPU.',
    setting='One attention alone (64 channels, 2 heads, 49 landmarks, agents or '
    'tokens in a block) on square maps of 784 to 12,544 tokens, float32, with the '
    'timing and memory of `benchmarks/side_by_side`: in each round all attentions '
    'take turns. An exponent is the slope of log time over log N; a seed has its own '
    'weights. Exponents up to 1.1 count as linear, for caches make large maps slower, '
    'and above 1.5 as more than linear. Swin-T with ELFATT and with softmax attention '
    'are compared at 224 and 320 pixels.',
    limits='On a CPU nothing is said about GPUs. Models of whole detection size take '
    'minutes a pass here; `docs/benchmarks/attentions_cpu.md` has them.',
    settings=dict(
        sides=[28, 40, 56, 80, 112],
        most_unfused=80,
        rounds=5,
        arch='tiny',
        images=[224, 320],
        model_rounds=3,
    ),
    smoke=dict(
        sides=[14, 21, 28],
        rounds=1,
        arch=dict(embed_dims=16, depths=[1, 1, 2, 1], num_heads=[2, 2, 4, 8]),
        images=[32, 64],
        model_rounds=1,
    ),
    minutes=5,
    units=units,
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
        Part(
            'how many times as fast Swin-T is with ELFATT, at the largest image',
            faster,
            margin=4.0,
            doubt=too_small,
        ),
    ),
    tables=tables,
    plot=plot,
)
