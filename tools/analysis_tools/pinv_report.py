"""Draw the accuracy of softmax-free attention's pseudo-inverse on real landmarks.

For each model with softmax-free attention (SOFT, SOFT++), it measures the matrix A of
the landmarks of each layer and head on the first image:
- the residual ||A A_k A - A|| / ||A|| after k Newton-Raphson steps, the mean over the
  heads, and the bound of the proof of convergence, the largest of all;
- the eigenvalues of A, and the cut-off: the eigenvalue that the model's steps invert by
  one half;
- the spectral norms of A+ from the steps, and of D^(-1/2) A+ D^(-1/2) by the number of
  landmarks, in evenly spread subsets of them.
  It computes in float64.

It writes pinv_report.png, and pinv_report.json with the numbers, to --out.
"""

import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools import figures

# isort: split
import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.utils import ProgressBar

from mmlinattn.analysis import (
    attentions_of,
    newton_cutoff,
    newton_residuals,
    normalize_by_degree,
    spectral_norm,
    watch,
)
from mmlinattn.functional import gaussian_kernel, newton_alpha, newton_pinv
from mmlinattn.functional.softmax_free.attention import soft_alpha
from mmlinattn.models import SoftmaxFreeAttention
from mmlinattn_tools.looking import looking_parser, run

SMALLEST = 8  # landmarks of a subset


def landmark_kernel(call):
    """A of the first image, (h, m, m) in float64, without the model's ridge."""
    attention = call.module
    q = attention.split_heads(call.q[:1]) / attention.head_dims**0.25
    return gaussian_kernel(attention.sampler(q, call.hw_shape)[0].double())


def step_size(a, attention):
    """The step size of a model's attention, (h, 1, 1)."""
    if attention.attn_norm:
        return newton_alpha(a)
    return soft_alpha(a.sum(-1, keepdim=True), attention.ridge)


def add_ridge(kernel, attention):
    """A with the model's ridge."""
    ridge = attention.ridge * (kernel.size(-1) if attention.relative_ridge else 1)
    return kernel + ridge * torch.eye(kernel.size(-1)).to(kernel)


def measure(call):
    """Convergence, eigenvalues and norms of one layer."""
    attention, kernel = call.module, landmark_kernel(call)
    alpha = step_size(kernel, attention)
    a = add_ridge(kernel, attention)
    eigenvalues = torch.linalg.eigvalsh(a)
    steps = attention.num_iters
    cutoff = newton_cutoff(alpha.flatten(), steps)
    return dict(
        landmarks=a.size(-1),
        residuals=newton_residuals(eigenvalues, alpha[..., 0], steps).mean(0).tolist(),
        eigenvalues=eigenvalues.flip(-1).mean(0).tolist(),
        cutoff=cutoff.mean().item(),
        above_cutoff=(eigenvalues > cutoff[:, None]).double().mean().item(),
        norms=norms_by_count(kernel, attention),
    )


def norms_by_count(kernel, attention):
    """Spectral norms of subsets of the landmarks, means over the heads."""
    num = kernel.size(-1)
    # without the power of two next to the whole number
    counts = [SMALLEST * 2**i for i in range(16) if 1.4 * SMALLEST * 2**i < num]
    norms = dict(landmarks=[*counts, num], plain=[], normalized=[])
    for size in norms['landmarks']:
        index = torch.linspace(0, num - 1, size).round().long()
        subset = kernel[:, index[:, None], index]
        inverse = newton_pinv(
            add_ridge(subset, attention),
            attention.num_iters,
            alpha=step_size(subset, attention),
            solver='spectral',
        )
        normalized = normalize_by_degree(inverse, subset)
        norms['plain'].append(spectral_norm(inverse, symmetric=True).mean().item())
        norm = spectral_norm(normalized, symmetric=True)
        norms['normalized'].append(norm.mean().item())
    return norms


@torch.no_grad()
def measure_model(model, inputs, tick):
    """Results of :func:`measure` for the first of the inputs (B, 3, H, W), by the name
    of each softmax-free attention's block; calls ``tick`` after each."""
    layers = {}

    def look(call):
        if isinstance(call.module, SoftmaxFreeAttention):
            layers[call.name.rpartition('.attn')[0] or call.name] = measure(call)
            tick()

    with watch(model, look):
        model(inputs)
    if not layers:
        kinds = sorted({type(x).__name__ for x in attentions_of(model).values()})
        raise ValueError(
            f'{type(model).__name__} has no SoftmaxFreeAttention, only '
            f'{", ".join(kinds)}: give a config of SOFT or SOFTPlusPlus'
        )
    return layers


def draw_report(models):
    figure = Figure((5 * len(models), 11), layout='constrained')
    names = figures.by_depth(name for model in models for name in model['layers'])
    looks = figures.styles(names, ordered=True)
    grid = figure.subplots(3, len(models), squeeze=False)
    for (steps, spectrum, norms), model in zip(grid.T, models):
        layers = model['layers'].values()
        for name, layer in model['layers'].items():
            title, look = figures.layer_title(name), looks[name]
            steps.plot(layer['residuals'], label=title, **look)
            eigenvalues = np.clip(layer['eigenvalues'], 1e-12, None)
            places = np.linspace(0, 1, len(eigenvalues))
            spectrum.plot(places, eigenvalues, **{**look, 'marker': ''})
            spectrum.axhline(layer['cutoff'], color=look['color'], ls=':', lw=0.8)
        steps.set(
            title=f'{model["label"]}\nConvergence',
            xlabel='Newton-Raphson steps',
            ylabel=figures.RESIDUAL,
            yscale='log',
        )
        # models compute in float32 at most, which has no smaller ones
        smallest = min(min(layer['residuals']) for layer in layers)
        steps.set_ylim(max(smallest / 3, 1e-8), 3)
        steps.xaxis.get_major_locator().set_params(integer=True)
        spectrum.set(
            title='Eigenvalues of $A$ (dotted: cut-off)',
            xlabel='rank, from largest (0) to smallest (1)',
            ylabel='eigenvalue',
            yscale='log',
        )
        draw_norms(norms, layers)
    figures.one_legend(figure, 3 * len(models))
    return figure


def draw_norms(axes, layers):
    """Two curves: mean and range over the layers that have a count of landmarks."""
    looks = figures.styles(figures.INVERSES)
    for key, name in figures.INVERSES.items():
        by_count = defaultdict(list)
        for layer in layers:
            norms = layer['norms']
            for count, norm in zip(norms['landmarks'], norms[key]):
                by_count[count].append(norm)
        counts = sorted(by_count)
        figures.plot_range(
            axes, counts, [by_count[x] for x in counts], name, **looks[key]
        )
    title = 'Spectral norms: mean and range of layers'
    axes.set(title=title, xlabel='landmarks', ylabel='norm', yscale='log')
    axes.set_xscale('log', base=2)
    axes.set_xticks(counts, labels=counts)


def draw(args, subjects, files):
    bar = ProgressBar()
    models = []
    for subject in subjects:
        inputs = subject.read(files[0]).inputs
        layers = measure_model(subject.backbone, inputs, bar.update)
        models.append(subject.describe(layers=layers))
    print()
    numbers = dict(image=files[0].name, models=models)
    yield 'pinv_report', draw_report(models), numbers


def main(argv=None):
    run(looking_parser(__doc__, 'pinv_report'), argv, draw)


if __name__ == '__main__':
    main()
