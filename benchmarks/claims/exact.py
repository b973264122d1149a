r"""What follows from the equations: findings without training, from numbers of float64.

Legend: h heads, N tokens, m landmarks, d channels of a head, A the landmarks' matrix,
P that of landmarks and tokens; for frequencies, A is any attention's matrix.
"""

import math
import time
from functools import partial
from itertools import product

import torch
from side_by_side.models import LINEAR, SIDES, ZOO, TokenModel
from side_by_side.plot import Panel
from side_by_side.rates import machine

from mmlinattn import analysis
from mmlinattn import functional as F
from mmlinattn.functional.softmax_free.attention import soft_alpha
from mmlinattn.functional.softmax_free.inverse import newton_filter
from mmlinattn.models.attentions.landmarks import pool_map
from mmlinattn.registry import build_model
from mmlinattn_tools.figures import HC_OVER_DC

SPREADS = {'alike': 0.1, 'spread': 0.5}  # for the kernel all tokens, or neighbors
NOISE = 'noise', 0.3
STEPS = 20
NEWTON, EXACT, RIDGE = 'Newton, 20 steps', 'exact', 'ridge 0.1'
CHANNELS, HEADS, LAYERS, MAP = 64, 2, 12, 14
log_panel = partial(Panel, xscale='log', yscale='log')


def curves(rows, name, x, y):
    """What a panel draws: of rows with the same name, which is a format, y over x."""
    found = {}
    for row in rows:
        xs, (ys,) = found.setdefault(name.format(**row), ([], [[]]))
        xs.append(row[x])
        ys.append(row[y])
    return found


def made_up_tokens(side, spread, dims=32, seed=0):
    """Tokens (1, 1, N, d) of a map with a side, float64: a sum of waves whose strength
    falls with their frequency, which a larger map samples more finely. ``spread`` is
    the standard deviation of each channel."""
    generator = torch.Generator().manual_seed(seed)
    draw = partial(torch.rand, generator=generator, dtype=torch.float64)
    num = 64
    waves = 0.5 * 32 ** draw(num)  # per image side, up to 16
    angles, phases = math.pi * draw(num), 2 * math.pi * draw(num, dims)
    strengths = torch.randn(num, dims, generator=generator).double() / waves[:, None]
    places = (torch.arange(side).double() + 0.5) / side
    y, x = torch.meshgrid(places, places, indexing='ij')
    turns = y.flatten()[:, None] * angles.sin() + x.flatten()[:, None] * angles.cos()
    arguments = 2 * math.pi * (turns * waves)[..., None] + phases  # (N, waves, d)
    tokens = (arguments.cos() * strengths).sum(1)
    # the strength does not depend on where it is sampled
    return (spread * tokens / strengths.square().sum(0).div(2).sqrt())[None, None]


def inverses(a, soft=False):
    """Eigenvalues (m,) and vectors of A (m, m), what eigenvalues become by the way of
    inversion, and the step size; with ``soft``, A's ridge and the step are SOFT's."""
    degree, alpha = a.sum(-1, keepdim=True), F.newton_alpha(a)
    if soft:
        a = a + 0.01 * torch.eye(len(a)).to(a)
        alpha = soft_alpha(degree, 0.01)
    alpha = alpha.squeeze()
    eigenvalues, vectors = torch.linalg.eigh(a)
    eigenvalues = eigenvalues.clamp(min=0)
    rounding = eigenvalues[-1] * len(a) * torch.finfo(a.dtype).eps
    found = {
        NEWTON: newton_filter(eigenvalues, alpha, STEPS),
        EXACT: torch.where(eigenvalues > rounding, 1 / eigenvalues, 0),
        RIDGE: 1 / (eigenvalues + 0.1),
    }
    return eigenvalues, vectors, found, alpha


def newton():
    """Newton's steps as a filter: residuals, errors of the inverse, cut-offs."""
    rows = []
    for (kind, spread), side in product([*SPREADS.items(), NOISE], (4, 7, 14, 28)):
        generator = torch.Generator().manual_seed(side)
        q = spread * torch.randn(side**2, 32, generator=generator).double()
        if kind in SPREADS:  # the control has no image, and nothing is learned
            q = made_up_tokens(side, spread)[0, 0]
        eigenvalues, _, found, alpha = inverses(F.gaussian_kernel(q))
        cutoff = analysis.newton_cutoff(alpha, STEPS)
        exact, steps = found[EXACT], found[NEWTON]
        row = dict(
            residual=analysis.newton_residuals(eigenvalues, alpha, STEPS)[-1],
            error=(steps - exact).abs().max() / exact.max(),
            cutoff=cutoff,
            kept=(eigenvalues > cutoff).double().mean(),
            newton=steps.max(),
            exact=exact.max(),
        )
        row = {key: x.item() for key, x in row.items()}
        rows.append(dict(row, tokens=kind, landmarks=side**2))
    grid = torch.logspace(-6, 0, 61, dtype=torch.float64)  # over the largest
    filters = {f'Newton, {t} steps': newton_filter(grid, 1.0, t) for t in (10, 20, 30)}
    filters.update({f'ridge {x:g} ‖A‖': 1 / (grid + x) for x in (1e-3, 1e-2)})
    filters = {name: (grid * g).tolist() for name, g in filters.items()}
    return dict(rows=rows, grid=grid.tolist(), filters=filters)


def show_newton(numbers):
    filters = {name: (numbers['grid'], [ys]) for name, ys in numbers['filters'].items()}
    cutoffs = curves(numbers['rows'], '{tokens}', 'landmarks', 'cutoff')
    labels = r'$\lambda / \|A\|$', r'$\lambda\, g(\lambda)$'
    return [
        Panel('what becomes of an eigenvalue', *labels, filters, 'log', level=0.5),
        log_panel('the cut-off', 'landmarks $m$', r'$\lambda_c$', cutoffs),
    ]


def spectral_norms(q, landmarks):
    r"""‖Ŝ‖₂ of SOFT and SOFT++ with each inverse, and of softmax attention: with
    :math:`\hat S = P^T L L^T P` the largest eigenvalue of :math:`L^T P P^T L`."""
    p, a = F.gaussian_kernel(landmarks, q), F.gaussian_kernel(landmarks)
    norms = {'softmax': analysis.spectral_norm((q @ q.mT).softmax(-1))}
    for model in ('SOFT', 'SOFT++'):
        _, vectors, found, _ = inverses(a, model == 'SOFT')
        scale = a.sum(-1, keepdim=True).rsqrt() if model == 'SOFT++' else 1
        for way, inverted in found.items():
            product = (scale * vectors * inverted.sqrt()).mT @ p
            name = model if way == NEWTON else f'{model}, {way}'
            norms[name] = analysis.spectral_norm(product @ product.mT, True)
    return {name: norm.item() for name, norm in norms.items()}


def norms():
    """The norm of the attention matrix against the number of tokens."""
    rows = []
    for (kind, spread), side in product(SPREADS.items(), (16, 24, 32, 40)):
        q = made_up_tokens(side, spread)
        for sampled, cells in (('ratio 4', side // 4), ('m = 64', 8)):
            landmarks = pool_map(q, (side, side), cells)
            row = dict(tokens=kind, landmarks=sampled, N=side**2)
            found = spectral_norms(q[0, 0], landmarks[0, 0])
            rows.extend(dict(row, attention=x, norm=y) for x, y in found.items())
    return dict(rows=rows)


def show_norms(numbers):
    panels = []
    for name in ('ratio 4', 'm = 64'):
        rows = [x for x in numbers['rows'] if x['landmarks'] == name]
        rows = [x for x in rows if ',' not in x['attention']]  # inverses hardly differ
        found = curves(rows, '{attention}, {tokens}', 'N', 'norm')
        panels.append(log_panel(name, 'tokens $N$', r'$\|\hat S\|_2$', found))
    return panels


# by name, for landmarks, features or agents in a number, and N tokens
ATTENTIONS = dict(LINEAR, softmax=lambda m, n: dict(type='SoftmaxAttention'))


@torch.no_grad()
def counts():
    """Multiplications and CPU time against the number of tokens."""
    rows, runs, rounds = [], [], 15
    for side in (28, 56, 112):
        found = {name: make(49, side**2) for name, make in ATTENTIONS.items()}
        soft = dict(found.pop('SOFT++'), ridge=0.01)
        del found['SOFT']  # its counts are SOFT++'s
        for solver in ('newton', 'cholesky'):
            soft['solver'] = solver
            for x in (4, 8):
                found[f'SOFT++, ratio {x}, {solver}'] = dict(soft, sampling_ratio=x)
            fixed = dict(soft, sampler='pool', num_landmarks=49)
            found[f'SOFT++, m = 49, {solver}'] = fixed
        maps = torch.randn(1, CHANNELS, side, side)
        for name, cfg in sorted(found.items()):
            module = build_model(cfg, embed_dims=CHANNELS, num_heads=HEADS)
            runs.append((TokenModel([module]).eval(), maps))
            millions = analysis.count_flops(*runs[-1]).total() / 1e6
            rows.append(dict(attention=name, N=side**2, millions=millions))
    for row, ms in zip(rows, cpu_times(runs, rounds)):
        row['ms'] = ms
    return dict(rows=rows, machine=machine(torch.device('cpu')), rounds=rounds)


def cpu_times(runs, rounds):
    """What models take for their input, a pair each: milliseconds of the processor, the
    least of some rounds in turn."""
    found = [math.inf] * len(runs)
    for _ in range(rounds):
        for i, (model, maps) in enumerate(runs):
            start = time.process_time()  # other processes do not count
            model(maps)
            found[i] = min(found[i], 1000 * (time.process_time() - start))
    return found


def show_counts(numbers):
    told = 'SOFT++, m = 49, newton', 'SOFT++, ratio', 'softmax', 'efficient', 'ELFATT'
    rows = [row for row in numbers['rows'] if row['attention'].startswith(told)]
    counted, timed = (curves(rows, '{attention}', 'N', x) for x in ('millions', 'ms'))
    return [
        log_panel('', 'tokens $N$', 'multiplications, $10^6$', counted),
        log_panel(numbers['machine'], 'tokens $N$', 'CPU time, ms', timed),
    ]


def matrices(seed=0):
    """Attention matrices (h, N, N) of the same queries, keys and values by name, with
    the weights that training starts from, and the logits of softmax (h, N, N)."""
    tokens = made_up_tokens(MAP, 1.0, CHANNELS, seed)[0]
    num = MAP**2
    torch.manual_seed(seed)
    weights = torch.randn(3, CHANNELS, CHANNELS).double() / CHANNELS**0.5
    q, k, v = (tokens @ weight for weight in weights)
    configs = {name: make(49, num) for name, make in ATTENTIONS.items()}
    configs['windows'] = dict(type='WindowAttention', window_size=7)
    for name in ('InLine', 'PolaFormer', 'MLLA', 'RALA'):
        cfg = ZOO[name]['attention']
        configs[name] = cfg[SIDES.index(MAP)] if isinstance(cfg, list) else cfg
    for name in ('SOFT', 'SOFT++'):
        configs[name] = dict(configs[name], sampling_ratio=2, sampler='pool')
    found = {'control: identity': torch.eye(num).double().expand(HEADS, -1, -1)}
    for name, cfg in sorted(configs.items()):
        module = build_model(cfg, embed_dims=CHANNELS, num_heads=HEADS).eval().double()
        of = (q, q, v) if name.startswith('SOFT') else (q, k, v)
        rows = analysis.attention_rows(module, *of, (MAP, MAP), range(num))
        found[name] = rows[0]
    softmax, identity = found['softmax'], found['control: identity']
    for omega in (1, 2):
        omegas = torch.tensor(HEADS * [omega])
        scaled = F.attn_scale(softmax[None], identity[None], omegas)
        found[f'AttnScale ω = {omega}'] = scaled[0]
    for s, name in enumerate(('FeatScale t = 1', 'control: s = t = 1')):
        found[name] = F.feat_scale(softmax, torch.tensor(s), torch.tensor(1))
    q, k = (x[0].unflatten(-1, (HEADS, -1)).transpose(0, 1) for x in (q, k))
    return found, q @ k.mT / (CHANNELS // HEADS) ** 0.5


def high(x):
    """HC of tokens (..., N, C)."""
    return x - x.mean(-2, keepdim=True)


def gain(attn):
    """The largest ‖HC[AX]‖ / ‖HC[X]‖ of any X if rows of A sum to one number, (...)."""
    return analysis.spectral_norm(high(high(attn).mT))


def logit_bound(largest, num):
    """Of :func:`gain` of softmax attention with N tokens and logits from -α to α: no
    norm is above the root of the largest sum of a row, 1, times that of a column."""
    return (num / (1 + (num - 1) * (-2 * largest).exp())).sqrt()


def distance(x, y):
    """Of outputs (h, N, C) from others, over the norm of these, (h,)."""
    return (x - y).norm(dim=(1, 2)) / y.norm(dim=(1, 2))


def frequencies():
    """How much of high frequencies attentions leave, and bounds of it; how far outputs
    are from those of softmax."""
    x = made_up_tokens(MAP, 1.0, CHANNELS, seed=1)[0, 0]
    found, logits = matrices()
    softmax = found['softmax'] @ x
    rows = []
    for name, attn in found.items():
        steps = [x.expand(HEADS, -1, -1)]
        for _ in range(LAYERS):
            steps.append(attn @ steps[-1])
        steps = torch.stack(steps)  # (L + 1, h, N, C)
        highs, proportions = (
            high(steps).norm(dim=(2, 3)),
            analysis.hc_proportion(steps, True),
        )
        exact = proportions[:-1] > 1e-8  # float64 says nothing of smaller ones
        rates = (highs[1:] / highs[:-1]).where(exact, 0).amax(0)
        row = dict(
            sums=attn.sum(-1).aminmax(),
            left=proportions.mean(1) / proportions[0, 0],
            rates=rates,
            bounds=gain(attn),
            distances=distance(steps[1], softmax),
        )
        row = {key: [y.item() for y in ys] for key, ys in row.items()}
        rows.append(dict(row, attention=name))
    largest = logits.abs().max()
    bound = logit_bound(largest, MAP**2).item()
    mean = distance(x.mean(0).expand_as(softmax), softmax).tolist()  # the control
    return dict(
        rows=rows, largest_logit=largest.item(), logit_bound=bound, mean_distance=mean
    )


def show_frequencies(numbers):
    scaled, xs, normed, others = [], [*range(LAYERS + 1)], {}, {}
    for row in numbers['rows']:
        name, left, rate = row['attention'], row['left'], max(row['rates'])
        if ' = ' not in name:
            (normed if left[-1] < 1e-3 * left[1] else others)[name] = xs, [left]
        if name.startswith(('softmax', 'Attn')):
            bound = (1 + len(scaled)) * numbers['logit_bound']
            scaled.append((rate, max(row['bounds']), bound))
    names = 'largest rate', 'its bound', 'bound by the logits'
    scales = {name: ([0, 1, 2], [ys]) for name, ys in zip(names, zip(*scaled))}
    left = 'applications', f'{HC_OVER_DC} left'
    rate = r'$\omega$ of AttnScale', r'rate of $\|\mathrm{HC}[X]\|$'
    return [
        Panel('rows sum to 1', *left, normed, yscale='log'),
        Panel('blocks, or other sums', *left, others, yscale='log'),
        Panel('softmax', *rate, scales, yscale='log', level=1),
    ]


# By name, a function that measures numbers for JSON, and one that draws panels of them.
FINDINGS = dict(
    newton=(newton, show_newton),
    norms=(norms, show_norms),
    counts=(counts, show_counts),
    frequencies=(frequencies, show_frequencies),
)
