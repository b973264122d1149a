"""How well twenty Newton-Raphson steps invert the landmarks' matrix, trained."""

import importlib.util
import statistics

from common import ROOT
from side_by_side.plot import Panel

from mmlinattn_tools.figures import INVERSES, RESIDUAL

from ..claim import Claim, Part, spread, values_of
from ..classification import normalized, trained
from . import soft_models

REPORT = ROOT / 'tools' / 'analysis_tools' / 'pinv_report.py'
# Residuals below it are shown as it: float64 itself has no smaller ones.
LEAST = 1e-16
STEPS, LANDMARKS = 'Newton-Raphson steps', 'landmarks (subsets)'


def measure(unit, context):
    """What pinv_report.py measures, by side of the images and layer."""
    spec = importlib.util.spec_from_file_location('pinv_report', REPORT)
    report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(report)
    model = trained(soft_models.backbone(context.settings, unit), context)
    found = {}
    for side in context.settings['sides']:
        images, _ = context.data.resized('val', side)
        layers = {}
        for image in images[: context.settings['looks']].split(1):
            inputs = normalized(image.to(context.device))
            measured = report.measure_model(model.backbone, inputs, lambda: None)
            for name, layer in measured.items():
                layers.setdefault(name, []).append(layer)
        found[str(side)] = {name: average(looks) for name, looks in layers.items()}
    return found


def average(looks):
    """Means over images of what the report measures of a layer."""

    def mean(values):
        if isinstance(values[0], list):
            return [statistics.fmean(x) for x in zip(*values)]
        return statistics.fmean(values)

    return dict(
        landmarks=looks[0]['landmarks'],
        residuals=mean([x['residuals'] for x in looks]),
        above_cutoff=mean([x['above_cutoff'] for x in looks]),
        counts=looks[0]['norms']['landmarks'],
        plain=mean([x['norms']['plain'] for x in looks]),
        normalized=mean([x['norms']['normalized'] for x in looks]),
    )


def last_residual(of_seed, unit, size):
    """Largest over the layers, after all steps, of the smaller or larger images."""
    layers = of_seed[unit][size(of_seed[unit], key=int)]
    return max(layer['residuals'][-1] for layer in layers.values())


def norm_growth(of_seed):
    """Norm of A+ with all landmarks over that with the fewest, largest of the layers
    that have most landmarks, with the larger images."""
    found = of_seed['SOFT++']
    layers = found[max(found, key=int)].values()
    most = max(layer['landmarks'] for layer in layers)
    return max(
        layer['plain'][-1] / layer['plain'][0]
        for layer in layers
        if layer['landmarks'] == most
    )


def tables(runs):
    rows = []
    for unit, sides in next(iter(runs.values())).items():
        for side, layers in sides.items():
            for name in layers:
                looks = values_of(runs, unit, side, name)
                residual = statistics.fmean(x['residuals'][-1] for x in looks)
                cells = [
                    f'< {LEAST:.0e}' if residual < LEAST else f'{residual:.1e}',
                    spread([100 * x['above_cutoff'] for x in looks], 1),
                    spread([x['plain'][-1] for x in looks], 2),
                    spread([x['normalized'][-1] for x in looks], 2),
                ]
                rows.append([unit, side, name, str(looks[0]['landmarks']), *cells])
    titles = [
        'model',
        'image side',
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


def panels(runs):
    first = next(iter(runs.values()))
    side = max(first['SOFT++'], key=int)
    found = []
    for unit in first:
        curves = {}
        for name in first[unit][side]:
            residuals = values_of(runs, unit, side, name, 'residuals')
            shown = [[max(r, LEAST) for r in x] for x in residuals]
            curves[name] = list(range(len(shown[0]))), shown
        title = f'{unit}, {side} pixels'
        found.append(Panel(title, STEPS, RESIDUAL, curves, yscale='log', level=0.01))
    for key, label in INVERSES.items():
        curves = {
            name: (layer['counts'], values_of(runs, 'SOFT++', side, name, key))
            for name, layer in first['SOFT++'][side].items()
        }
        label = f'spectral norm of {label}'
        found.append(Panel(title, LANDMARKS, label, curves, 'log', 'log'))
    return found


CLAIM = Claim(
    name='inverse',
    title='Newton-Raphson inverts trained landmarks',
    claim='Twenty Newton-Raphson steps come close to the pseudo-inverse of the '
    "landmarks' matrix A. Its spectral norm grows with the number of landmarks.",
    paper='SOFT, Figure 5 and Table 12 (convergence); SOFT++, Figure 6 (norms).',
    setting='SOFT and SOFT++ with 32 to 128 channels are trained for 800 steps on '
    'images of 64 pixels, and looked at with the measures of '
    '`tools/analysis_tools/pinv_report.py`, in float64, on held-back images of 64 '
    'pixels (16, 16, 4 landmarks) and 224 pixels (196, 196, 49). A residual of 0.01 '
    'counts as close.',
    limits='Models this small, trained for 800 steps, may have other landmarks than '
    'those of 300 epochs of ImageNet. A small residual says that the steps invert what '
    'they reach, not that they reach the exact pseudo-inverse.',
    settings=dict(soft_models.SETTINGS, sides=[64, 224], looks=4),
    smoke=dict(soft_models.SMOKE, sides=[32, 64], looks=1),
    minutes=12,
    units=lambda settings: list(soft_models.NAMES),
    measure=measure,
    parts=(
        *(
            Part(
                f'{unit}, {which} images: 0.01 less the residual after 20 steps',
                lambda x, unit=unit, size=size: 0.01 - last_residual(x, unit, size),
            )
            for unit in ('SOFT++', 'SOFT')
            for which, size in (('smaller', min), ('larger', max))
        ),
        Part(
            'the norm of A† with all landmarks over that with eight, less 1',
            lambda x: norm_growth(x) - 1,
        ),
    ),
    tables=tables,
    panels=panels,
)
