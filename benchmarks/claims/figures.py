"""Figures of what trained networks show, and what their attentions cost."""

import numpy as np
import torch
from matplotlib import style
from matplotlib.lines import Line2D
from side_by_side.plot import STYLE, Panel, plot_lines, save, subplots
from side_by_side.rates import machine

from mmlinattn_tools.figures import HC_OVER_DC, one_legend, plot_range

from .claim import CONTRADICTED, INCONCLUSIVE, NOT_TESTED, SUPPORTED
from .exact import cpu_times
from .looks import ALIKE, HIGH, WAYS
from .models import BACKBONES, VITS, flat
from .plan import TECHNIQUES
from .tasks import Classifier

COLORS = {
    SUPPORTED: '#009e73',
    CONTRADICTED: '#d55e00',
    INCONCLUSIVE: '#0072b2',
    NOT_TESTED: '#999999',
}
# Products, as the paper has it, in place of eigenvalues.
STEPS = 'flat SOFT++, printed steps'
KINDS = ('no attention', 'softmax', 'ELFATT', 'efficient', 'SOFT++')
TIMED = [f'flat {x}' for x in (*KINDS, 'SOFT++ ridge 0.001', 'SOFT++ 4 landmarks')]
SIDES = (32, 256)
ROUNDS = 5
LARGE = (-0.5, -0.1, -0.02, 0, 0.02, 0.1, 0.5)  # effects
SCORES = dict(imagenette='top-1', cifar10='top-1', bccd='AP50', camvid='mean IoU')


@style.context(STYLE)
def plot_parts(verdicts, path):
    """Draws the effects of the parts of a claim, and the margins they are held to."""
    figure, (axes,) = subplots(1, 9, 1 + 0.25 * len(verdicts))
    for place, found in enumerate(verdicts):
        color, part = COLORS[found.verdict], found.part
        if found.interval:
            axes.hlines(place, *found.interval, color=color, linewidth=3, alpha=0.5)
            axes.plot(found.effect, place, 'o', color=color)
        for margin in {part.margin, -part.margin if part.equal else part.margin}:
            axes.plot([margin, margin], [place - 0.4, place + 0.4], 'k:', linewidth=1)
    axes.axvline(0, color='black', linewidth=0.5)
    axes.locator_params(axis='x', nbins=6)
    if np.abs(axes.get_xlim()).max() > 0.2:
        axes.set_xscale('symlog', linthresh=0.01)
        axes.margins(x=0.05)  # of the new scale
        axes.set_xticks(LARGE, [f'{x:g}' for x in LARGE])
    axes.set_yticks(range(len(verdicts)), [x.part.text for x in verdicts])
    for label, found in zip(axes.get_yticklabels(), verdicts):
        label.set_color(COLORS[found.verdict])
    axes.set(ylim=(len(verdicts) - 0.5, -0.5), xlabel='effect and its interval')
    looks = [Line2D([], [], color=x, marker='o') for x in COLORS.values()]
    looks.append(Line2D([], [], color='black', linestyle=':'))
    figure.legend(looks, [*COLORS, 'margin'], loc='outside lower center', ncols=5)
    save(figure, path)


@style.context(STYLE)
def plot_scores(scores, path):
    """Draws the scores of every seed, by data and model."""
    names = list(dict.fromkeys(name for of in scores.values() for name in of))
    height = 1 + 0.18 * len(names)
    figure, panels = subplots(len(scores), 10, height, sharey=True)
    for axes, (data, found) in zip(panels, scores.items()):
        for name, ys in found.items():
            place = names.index(name)
            axes.plot(ys, [place] * len(ys), 'o', color=COLORS[NOT_TESTED], alpha=0.6)
            axes.plot(np.mean(ys), place, 'k|', markersize=9, markeredgewidth=1)
        axes.set(title=data, xlabel=SCORES[data])
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    save(figure, path)


def plot_depths(looks, path):
    """Draws measures of ViTs' tokens by layer from what was measured of each seed, by
    model: high frequencies with and without parts of a model, then similarities."""

    def panel(title, label, found, scale):
        layers = {x: [*range(1, len(ys[0]) + 1)] for x, ys in found.items() if ys}
        found = {x: (layers[x], found[x]) for x in layers}
        return Panel(title, 'layer', label, found, yscale=scale)

    panels = []
    for name in VITS:
        found = {}
        for way in WAYS:
            curves = [x[HIGH + way]['curve'] for x in looks.get(name, [])]
            found[way[2:] or 'as it is'] = [[y / ys[0] for y in ys] for ys in curves]
        panels.append(panel(name, f'{HC_OVER_DC} over the first', found, 'log'))
    found = {
        technique: [x[ALIKE]['curve'] for x in looks.get(f'{name} {technique}', [])]
        for technique in TECHNIQUES
    }
    title, label = f'{name}, fine-tuned', f'{ALIKE} of tokens'
    plot_lines([*panels, panel(title, label, found, 'linear')], path)


@torch.no_grad()
def measured_times():
    """What flat models take for a photo: milliseconds of the processor, by model the
    least of :data:`ROUNDS` in turn for each of :data:`SIDES`, and the machine."""
    backbones = {name: BACKBONES[name] for name in TIMED}
    backbones[STEPS] = flat(solver='newton')
    models = [Classifier(x, 10).eval() for x in backbones.values()]
    photos = [torch.rand(1, 3, side, side) * 255 for side in SIDES]
    spent = zip(*(cpu_times([(x, photo) for x in models], ROUNDS) for photo in photos))
    found = {name: dict(zip(map(str, SIDES), ms)) for name, ms in zip(backbones, spent)}
    return dict(about=machine(torch.device('cpu')), milliseconds=found)


@style.context(STYLE)
def plot_times(scores, times, path):
    """Draws the scores of every seed, by model, against :func:`measured_times`."""
    figure, panels = subplots(len(SIDES), 9, 4, sharey=True)
    for axes, side, scale in zip(panels, map(str, SIDES), ('linear', 'log')):
        for name, spent in times['milliseconds'].items():
            # other ways to take the same steps have the same accuracy
            ys = scores.get('flat SOFT++' if name == STEPS else name)
            if ys:
                plot_range(axes, len(ys) * [spent[side]], [[y] for y in ys], name)
        axes.set(xscale=scale, xlabel=f'ms per photo of {side} × {side} pixels')
    panels[0].set(title=times['about'], ylabel='top-1 at 32 pixels')
    one_legend(figure)
    save(figure, path)
