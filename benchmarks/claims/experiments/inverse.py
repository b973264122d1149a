"""How well twenty Newton-Raphson steps invert the landmarks' matrix, trained."""

import copy

import torch

from ..claim import Claim, Part, spread, values_of
from ..classification import normalized, trained
from ..data import load_tool
from ..plots import Panel, plot_lines
from . import soft_models

# Residuals below it are shown as it: float64 itself has no smaller ones.
LEAST = 1e-16


def units(settings):
    return list(soft_models.NAMES)


def measure(unit, context):
    """Convergence, eigenvalues and norms, at both sizes and in both modes."""
    model = trained(soft_models.backbone(context.settings, unit), context)
    report = load_tool('tools/analysis_tools/pinv_report.py')
    found = {}
    for side in context.settings['sides']:
        images, _ = context.data.tensors('val', side)
        num = context.settings['batch']
        inputs = normalized(images[:num].to(context.device))
        for mode in ('evaluation', 'training'):
            # normalization in training mode changes the running statistics
            backbone = copy.deepcopy(model.backbone).train(mode == 'training')
            layers = {}
            for first in context.track(range(context.settings['looks']), mode):
                batch = inputs.roll(-first, 0)  # the report looks at the first image
                torch.manual_seed(context.seed)
                found_layers = report.measure_model(backbone, batch, lambda: None)
                for name, layer in found_layers.items():
                    layers.setdefault(name, []).append(layer)
            found[f'{side}, {mode}'] = {
                name: average(looks) for name, looks in layers.items()
            }
    return dict(found=found, steps=20)


def average(looks):
    """Means over images of what the report measures of a layer."""

    def mean(values):
        if isinstance(values[0], list):
            return [mean(list(x)) for x in zip(*values)]
        return sum(values) / len(values)

    first = looks[0]
    return dict(
        landmarks=first['landmarks'],
        residuals=mean([x['residuals'] for x in looks]),
        bound=mean([x['bound'] for x in looks]),
        above_cutoff=mean([x['above_cutoff'] for x in looks]),
        cutoff=mean([x['cutoff'] for x in looks]),
        counts=first['norms']['landmarks'],
        plain=mean([x['norms']['plain'] for x in looks]),
        normalized=mean([x['norms']['normalized'] for x in looks]),
    )


def last_residual(of_seed, unit, side):
    """Largest over the layers, after all steps."""
    layers = at(of_seed[unit], side, 'evaluation').values()
    return max(layer['residuals'][-1] for layer in layers)


def at(numbers, side, mode):
    keys = [key for key in numbers['found'] if key.endswith(mode)]
    return numbers['found'][keys[side]]


def norm_growth(of_seed, key):
    """Norm with all landmarks over that with the fewest, largest of the layers that
    have most landmarks, at the larger size."""
    layers = list(at(of_seed['SOFT++'], -1, 'evaluation').values())
    most = max(layer['landmarks'] for layer in layers)
    return max(
        layer[key][-1] / layer[key][0] for layer in layers if layer['landmarks'] == most
    )


def largest_norm(of_seed, key):
    layers = at(of_seed['SOFT++'], -1, 'evaluation').values()
    return max(layer[key][-1] for layer in layers)


def tables(runs):
    rows = []
    for unit in next(iter(runs.values())):
        for key in next(iter(runs.values()))[unit]['found']:
            for name in next(iter(runs.values()))[unit]['found'][key]:
                layers = values_of(runs, unit, 'found', key, name)
                rows.append(
                    [
                        unit,
                        key,
                        name,
                        str(layers[0]['landmarks']),
                        scientific([x['residuals'][-1] for x in layers]),
                        spread([100 * x['above_cutoff'] for x in layers], 1),
                        spread([x['plain'][-1] for x in layers], 2),
                        spread([x['normalized'][-1] for x in layers], 2),
                    ]
                )
    titles = [
        'model',
        'image side, mode',
        'layer',
        'landmarks',
        'residual after 20 steps',
        'eigenvalues above the cut-off, %',
        'norm of A†',
        'of D^(-1/2) A† D^(-1/2)',
    ]
    caption = (
        'Means over heads and images. The cut-off is the eigenvalue of which the steps '
        "invert one half; solver='auto' expects few eigenvalues above it on large "
        'maps'
    )
    return [(caption, titles, rows)]


def scientific(values):
    mean = sum(values) / len(values)
    return f'< {LEAST:.0e}' if mean < LEAST else f'{mean:.1e}'


def plot(runs, path):
    first = next(iter(runs.values()))
    panels = []
    large = list(first['SOFT++']['found'])[-2]
    for unit in first:
        key = list(first[unit]['found'])[-2]
        curves = {}
        for name in first[unit]['found'][key]:
            layers = values_of(runs, unit, 'found', key, name)
            steps = range(len(layers[0]['residuals']))
            shown = [[max(r, LEAST) for r in x['residuals']] for x in layers]
            curves[name] = (list(steps), shown)
        panels.append(
            Panel(
                f'{unit}, {key}',
                'Newton-Raphson steps',
                '||A A_k A - A|| / ||A||',
                curves,
                yscale='log',
                level=0.01,
            )
        )
    curves = {}
    for name in first['SOFT++']['found'][large]:
        layers = values_of(runs, 'SOFT++', 'found', large, name)
        for key, label in (('plain', 'A†'), ('normalized', 'normalized')):
            curves[f'{name}, {label}'] = (layers[0]['counts'], [x[key] for x in layers])
    panels.append(
        Panel(
            f'SOFT++, {large}',
            'landmarks (subsets)',
            'spectral norm',
            curves,
            'log',
            'log',
        )
    )
    plot_lines(panels, path)


CLAIM = Claim(
    name='inverse',
    title='Newton-Raphson inverts trained landmarks',
    claim='Twenty Newton-Raphson steps come close to the pseudo-inverse of the '
    "landmarks' matrix A. Its spectral norm grows with the number of landmarks; "
    "SOFT++'s normalization keeps it small.",
    paper='SOFT, Figure 5 and Table 12 (convergence); SOFT++, Figure 6 (norms).',
    setting='SOFT and SOFT++ with 32 to 128 channels are trained for 800 steps on '
    'images of 64 pixels, and looked at with the measures of '
    '`tools/analysis_tools/pinv_report.py`, in float64, on held-back images of 64 '
    'pixels (16, 16, 4 landmarks) and 224 pixels (196, 196, 49). A residual of 0.01 '
    'counts as close. Training mode is measured too, where batch normalization uses '
    'the statistics of the batch.',
    limits='Models this small, trained for 800 steps, may have other landmarks than '
    'those of 300 epochs of ImageNet.',
    settings=dict(soft_models.SETTINGS, sides=[64, 224], batch=16, looks=4),
    smoke=dict(soft_models.SMOKE, sides=[32, 64], batch=2, looks=1),
    minutes=12,
    units=units,
    measure=measure,
    parts=(
        Part(
            'SOFT++ at 64 pixels: 0.01 less the residual after 20 steps',
            lambda x: 0.01 - last_residual(x, 'SOFT++', 0),
        ),
        Part(
            'SOFT++ at 224 pixels: the same',
            lambda x: 0.01 - last_residual(x, 'SOFT++', -1),
        ),
        Part(
            'SOFT at 64 pixels: the same', lambda x: 0.01 - last_residual(x, 'SOFT', 0)
        ),
        Part(
            'SOFT at 224 pixels: the same',
            lambda x: 0.01 - last_residual(x, 'SOFT', -1),
        ),
        Part(
            'the norm of A† with all landmarks over that with eight, less 1',
            lambda x: norm_growth(x, 'plain') - 1,
        ),
        Part(
            'the largest norm without normalization over the largest with it, less 1',
            lambda x: largest_norm(x, 'plain') / largest_norm(x, 'normalized') - 1,
        ),
    ),
    tables=tables,
    plot=plot,
    data=('classification',),
)
