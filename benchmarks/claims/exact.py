r"""What follows from the equations: findings without training, from numbers of float64.

Tokens are those of a made-up image, a sum of waves whose strength falls with their
frequency: a larger map samples the same image more finely. ``spread`` is the standard
deviation of each of a token's 32 channels: at 0.1 all tokens are alike for the Gaussian
kernel, at 0.5 only neighbors are.

Legend: h heads, N tokens, m landmarks, d channels of a head, A the landmarks' matrix,
P that of landmarks and tokens.
"""

import math
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import torch
from side_by_side.models import LINEAR, TokenModel
from side_by_side.plot import Panel
from side_by_side.report import exponent

from mmlinattn.analysis import (
    attention_rows,
    count_flops,
    hc_proportion,
    newton_cutoff,
    newton_residuals,
)
from mmlinattn.functional import (
    attn_scale,
    feat_scale,
    gaussian_kernel,
    newton_alpha,
    softmax_free_attention,
)
from mmlinattn.functional.softmax_free.attention import soft_alpha
from mmlinattn.functional.softmax_free.inverse import newton_filter
from mmlinattn.models.attentions.landmarks import SAMPLERS, pool_map
from mmlinattn.registry import build_model
from mmlinattn_tools.figures import HC_PROPORTION

SPREADS = {'alike': 0.1, 'spread': 0.5}
STEPS = 20
NEWTON, EXACT, RIDGE = 'Newton, 20 steps', 'exact', 'ridge 0.1'


class Finding(NamedTuple):
    """A finding of this kind.

    Attributes:
        name (str): Of its files.
        title (str): What is found.
        text (str): Why it is so, and what the control is; Markdown.
        measure (callable): Returns numbers that JSON can hold.
        tables (callable): Of the numbers, (caption, titles, rows) each.
        panels (callable): Of the numbers, what ``plot_lines`` draws.
    """

    name: str
    title: str
    text: str
    measure: Callable[[], dict[str, Any]]
    tables: Callable[[dict], list[tuple[str, list[str], list[list[str]]]]]
    panels: Callable[[dict], list[Panel]]


def made_up_tokens(side, spread, dims=32, seed=0):
    """Tokens of a map with a side, (1, 1, N, d) in float64."""
    generator = torch.Generator().manual_seed(seed)
    num = 64

    def draw(*shape):
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

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
    """What the eigenvalues of A become, by the way of inversion.

    Args:
        a (Tensor): (m, m), positive semi-definite.
        soft (bool): SOFT's step size and ridge in place of SOFT++'s.

    Returns:
        tuple: Eigenvalues (m,), eigenvectors (m, m), a dict of (m,), and Newton's step
        size.
    """
    degree = a.sum(-1, keepdim=True)
    alpha = newton_alpha(a)
    if soft:
        a = a + 0.01 * torch.eye(len(a)).to(a)
        alpha = soft_alpha(degree, 0.01)
    alpha = alpha.squeeze()
    eigenvalues, vectors = torch.linalg.eigh(a)
    eigenvalues = eigenvalues.clamp(min=0)
    rounding = eigenvalues[-1] * len(a) * torch.finfo(a.dtype).eps
    inverted = torch.where(eigenvalues > rounding, 1 / eigenvalues, 0)
    found = {
        NEWTON: newton_filter(eigenvalues, alpha, STEPS),
        EXACT: inverted,
        RIDGE: 1 / (eigenvalues + 0.1),
    }
    return eigenvalues, vectors, found, alpha


# 1. Newton's steps as a filter


def measure_newton():
    rows = []
    for kind, spread in {**SPREADS, 'noise': None}.items():
        for side in (4, 7, 14, 28):
            if spread is None:  # control: no image, nothing learned
                generator = torch.Generator().manual_seed(side)
                q = 0.3 * torch.randn(side**2, 32, generator=generator).double()
            else:
                q = made_up_tokens(side, spread)[0, 0]
            eigenvalues, _, found, alpha = inverses(gaussian_kernel(q))
            cutoff = newton_cutoff(alpha, STEPS).item()
            exact, newton = found[EXACT], found[NEWTON]
            error = (newton - exact).abs().max() / exact.max()
            rows.append(
                dict(
                    tokens=kind,
                    landmarks=side**2,
                    residual=newton_residuals(eigenvalues, alpha, STEPS)[-1].item(),
                    error=error.item(),
                    cutoff=cutoff,
                    kept=(eigenvalues > cutoff).double().mean().item(),
                    exact=exact.max().item(),
                    newton=newton.max().item(),
                )
            )
    grid = torch.logspace(-6, 0, 61, dtype=torch.float64)  # over the largest
    curves = {
        f'Newton, {steps} steps': (grid * newton_filter(grid, 1.0, steps)).tolist()
        for steps in (10, 20, 30)
    }
    for ridge in (1e-3, 1e-2):
        curves[f'ridge {ridge:g} of the largest'] = (grid / (grid + ridge)).tolist()
    return dict(rows=rows, grid=grid.tolist(), curves=curves)


NEWTON_COLUMNS = {
    'landmarks': ('tokens', '{}'),
    'm': ('landmarks', '{}'),
    '‖A A₂₀ A - A‖ / ‖A‖': ('residual', '{:.1e}'),
    '‖A₂₀ - A†‖ / ‖A†‖': ('error', '{:.3f}'),
    'cut-off λ_c': ('cutoff', '{:.2g}'),
    'eigenvalues above it': ('kept', '{:.0%}'),
    '‖A₂₀‖': ('newton', '{:.3g}'),
    '‖A†‖': ('exact', '{:.1e}'),
}


def newton_tables(numbers):
    columns = NEWTON_COLUMNS.values()
    rows = [[form.format(x[key]) for key, form in columns] for x in numbers['rows']]
    caption = 'Twenty steps on landmarks of a made-up image, and on noise'
    return [(caption, [*NEWTON_COLUMNS], rows)]


def newton_panels(numbers):
    filters = {name: (numbers['grid'], [ys]) for name, ys in numbers['curves'].items()}
    cutoffs = {}
    for row in numbers['rows']:
        xs, (ys,) = cutoffs.setdefault(row['tokens'], ([], [[]]))
        xs.append(row['landmarks'])
        ys.append(row['cutoff'])
    return [
        Panel(
            'what becomes of an eigenvalue',
            r'$\lambda / \|A\|$',
            r'$\lambda\, g(\lambda)$',
            filters,
            'log',
            level=0.5,
        ),
        Panel('the cut-off', 'landmarks', r'$\lambda_c$', cutoffs, 'log', 'log'),
    ]


# 2. Norms of the attention matrix


def spectral_norms(q, landmarks):
    r"""‖Ŝ‖₂ of SOFT and SOFT++ with each inverse, and of softmax attention.

    With :math:`\hat S = P^T G P` and :math:`G = L L^T`, it is the largest eigenvalue of
    :math:`L^T P P^T L`.
    """
    p = gaussian_kernel(landmarks, q)
    a = gaussian_kernel(landmarks)
    norms = {}
    for model in ('SOFT', 'SOFT++'):
        _, vectors, found, _ = inverses(a, model == 'SOFT')
        scale = a.sum(-1).rsqrt() if model == 'SOFT++' else torch.ones(len(a)).to(a)
        for way, inverted in found.items():
            left = scale[:, None] * vectors * inverted.sqrt()
            product = left.mT @ p
            norms[f'{model}, {way}'] = torch.linalg.eigvalsh(product @ product.mT)[-1]
    norms['softmax'] = torch.linalg.matrix_norm((q @ q.mT).softmax(-1), 2)
    return {name: norm.item() for name, norm in norms.items()}


def measure_norms():
    rows = []
    for kind, spread in SPREADS.items():
        for side in (16, 24, 32, 40):
            q = made_up_tokens(side, spread)
            for growth, cells in (('ratio 4', side // 4), ('m = 64', 8)):
                landmarks = pool_map(q, (side, side), cells)
                norms = spectral_norms(q[0, 0], landmarks[0, 0])
                case = dict(tokens=kind, growth=growth, N=side**2, m=cells**2)
                rows.append(dict(case, norms=norms))
    return dict(rows=rows)


def norm_curves(numbers, kind, growth):
    chosen = [
        row
        for row in numbers['rows']
        if (row['tokens'], row['growth']) == (kind, growth)
    ]
    return {
        name: ([row['N'] for row in chosen], [[row['norms'][name] for row in chosen]])
        for name in chosen[0]['norms']
    }


def drawn(curves):
    """Names without those of other inverses, which hardly differ."""
    return [name for name in curves if RIDGE not in name and EXACT not in name]


def norm_tables(numbers):
    rows = []
    for kind in SPREADS:
        for growth in ('ratio 4', 'm = 64'):
            curves = norm_curves(numbers, kind, growth)
            for name in drawn(curves):
                xs, (ys,) = curves[name]
                cells = [f'{ys[0]:.3g}', f'{ys[-1]:.3g}', f'{slope(xs, ys):.2f}']
                rows.append([kind, growth, name, *cells])
    titles = ['tokens', 'landmarks', 'attention', 'N = 256', 'N = 1,600', 'exponent']
    return [('The norm of the attention matrix, and the power of N', titles, rows)]


def norm_panels(numbers):
    found = []
    for growth in ('ratio 4', 'm = 64'):
        curves = {}
        for kind in SPREADS:
            every = norm_curves(numbers, kind, growth)
            for name in drawn(every):
                curves[f'{name.partition(",")[0]}, {kind}'] = every[name]
        found.append(
            Panel(growth, 'tokens $N$', r'$\|\hat S\|_2$', curves, 'log', 'log')
        )
    return found


# 3. Counts of multiplications

CHANNELS, HEADS = 64, 2
COUNT_SIDES = (28, 56, 112)
RATIO_OF = {'ratio 4': dict(sampling_ratio=4), 'ratio 8': dict(sampling_ratio=8)}
FIXED = {'m = 49': dict(sampler='pool', num_landmarks=49)}


def count_cases():
    """Attentions by name, each a function of N. SOFT's counts are SOFT++'s."""
    for name, options in {**FIXED, **RATIO_OF}.items():
        for solver in ('newton', 'cholesky'):
            cfg = dict(type='SoftmaxFreeAttention', kernel_size=3, ridge=0.01)
            cfg.update(options, solver=solver)
            yield f'SOFT++, {name}, {solver}', lambda n, cfg=cfg: cfg
    yield 'softmax', lambda n: dict(type='SoftmaxAttention')
    for name in LINEAR.keys() - {'SOFT', 'SOFT++'}:
        yield name, lambda n, name=name: LINEAR[name](49, n)


def measure_counts():
    """Multiplications of one attention on a map, of its parts that grow with N."""
    found = {}
    for name, config in sorted(count_cases()):
        counts = []
        for side in COUNT_SIDES:
            cfg = config(side**2)
            module = build_model(cfg, embed_dims=CHANNELS, num_heads=HEADS)
            with torch.device('meta'):
                maps = torch.empty(1, CHANNELS, side, side)
            model = TokenModel([module]).to('meta')
            counts.append(count_flops(model, maps).total())
        found[name] = counts
    return dict(tokens=[side**2 for side in COUNT_SIDES], counts=found)


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Exponent of the power that fits best."""
    return float(exponent(list(zip(xs, ys))))


def count_tables(numbers):
    tokens = numbers['tokens']
    rows = [
        [
            name,
            *(f'{count / 1e6:.4g}' for count in counts),
            f'{slope(tokens[-2:], counts[-2:]):.2f}',
        ]
        for name, counts in numbers['counts'].items()
    ]
    titles = ['attention', *(f'N = {n:,}' for n in tokens), 'exponent of the last two']
    return [('Multiplications of one attention, in millions', titles, rows)]


def count_panels(numbers):
    curves = {
        name: (numbers['tokens'], [counts])
        for name, counts in numbers['counts'].items()
    }
    groups = {
        'softmax-free': {
            x: y for x, y in curves.items() if x.lower().startswith('soft')
        },
        'others': {x: y for x, y in curves.items() if not x.startswith('SOFT')},
    }
    return [
        Panel(title, 'tokens $N$', 'multiplications', group, 'log', 'log')
        for title, group in groups.items()
    ]


# 4. Frequencies

LAYERS = 12
MAP = 14
OMEGAS = (0.0, 0.5, 1.0, 2.0)
OTHERS = {
    'softmax': dict(type='SoftmaxAttention'),
    'windows of 7 × 7': dict(type='WindowAttention', window_size=7),
    'InLine': dict(type='InLineAttention'),
    'PolaFormer': dict(type='PolaFormerAttention', map_side=MAP),
    'MLLA': dict(type='MLLAAttention'),
    'RALA': dict(type='RankAugmentedAttention'),
}


def matrices(seed=0):
    """Attention matrices (h, N, N) on the same tokens, with the weights that training
    starts from."""
    tokens = made_up_tokens(MAP, 1.0, CHANNELS, seed)[0]
    num = MAP**2
    configs = {**OTHERS, **{name: make(49, num) for name, make in LINEAR.items()}}
    for name in ('SOFT', 'SOFT++'):
        configs[name] = dict(configs[name], sampling_ratio=2, sampler='pool')
    found = {}
    for name, cfg in sorted(configs.items()):
        torch.manual_seed(seed)
        module = build_model(cfg, embed_dims=CHANNELS, num_heads=HEADS).eval().double()
        weights = torch.randn(3, CHANNELS, CHANNELS).double() / CHANNELS**0.5
        q, k, v = (tokens @ weight for weight in weights)
        if name in ('SOFT', 'SOFT++'):
            k = q
        found[name] = attention_rows(module, q, k, v, (MAP, MAP), range(num))[0]
    found['control: mean of all'] = torch.full((1, num, num), 1 / num).double()
    found['control: identity'] = torch.eye(num).double()[None]
    return found


def decay(attn, x, omega=0.0, dc=0.0, hc=0.0):
    """‖HC‖ / ‖DC‖ of tokens (N, C) after 0, 1, ... applications of a matrix (N, N)."""
    found = [hc_proportion(x).item()]
    for _ in range(LAYERS):
        out = attn_scale((attn @ x)[None, None], x[None, None], torch.tensor([omega]))
        x = feat_scale(out[0], torch.tensor(dc), torch.tensor(hc))[0]
        x = x / x.norm()  # a number, which the proportion does not see
        found.append(hc_proportion(x).item())
    return found


def measure_frequencies():
    x = made_up_tokens(MAP, 1.0, CHANNELS, seed=1)[0, 0]
    found = matrices()
    rows = {}
    for name, attn in found.items():
        curve = [sum(ys) / len(attn) for ys in zip(*(decay(a, x) for a in attn))]
        sums = attn.sum(-1)
        rows[name] = dict(curve=curve, sums=[sums.min().item(), sums.max().item()])
    softmax = found['softmax'][0]
    scaled = {f'AttnScale, ω = {omega:g}': decay(softmax, x, omega) for omega in OMEGAS}
    for name, dc in (('s = 0', 0.0), ('s = 1: control', 1.0)):
        scaled[f'FeatScale, t = 1, {name}'] = decay(softmax, x, dc=dc, hc=1.0)
    return dict(rows=rows, scaled=scaled)


def left(ys):
    """Of the proportion, after one and all applications."""
    return [f'{ys[1] / ys[0]:.3g}', f'{ys[-1] / ys[0]:.2g}']


def frequency_tables(numbers):
    rows = [
        [name, *(f'{x:.3g}' for x in row['sums']), *left(row['curve'])]
        for name, row in numbers['rows'].items()
    ]
    titles = ['attention', 'least sum of a row', 'largest', 'left after 1']
    titles.append(f'after {LAYERS}')
    scaled = [[name, *left(ys)] for name, ys in numbers['scaled'].items()]
    return [
        ('What is left of ‖HC‖ / ‖DC‖', titles, rows),
        ('The same of the first head of softmax', [titles[0], *titles[3:]], scaled),
    ]


def frequency_panels(numbers):
    xs = list(range(LAYERS + 1))
    panels = {'rows sum to 1': {}, 'blocks, or other sums': {}, 'softmax, one head': {}}
    for name, row in numbers['rows'].items():
        # a mean leaves nothing from the first application on
        if row['curve'][1] > 1e-15:
            falls = row['curve'][-1] < 1e-3 * row['curve'][1]
            panels[[*panels][not falls]][name] = row['curve']
    for name, ys in numbers['scaled'].items():
        if 'Attn' in name:
            panels['softmax, one head'][name] = ys
    return [
        Panel(
            title,
            'applications',
            HC_PROPORTION,
            {name: (xs, [ys]) for name, ys in curves.items()},
            yscale='log',
        )
        for title, curves in panels.items()
    ]


# 5. Where training starts

STARTS = (0.03, 0.1, 0.3, 1.0)  # spreads


def measure_start():
    """What SOFT++'s attention does with the samplers that training starts from."""
    found = {}
    for sampler in SAMPLERS:
        found[sampler] = dict(kernel=[], gain=[], varies=[])
        for spread in STARTS:
            tokens = made_up_tokens(28, spread).float()
            torch.manual_seed(0)
            values = torch.randn(tokens.shape)
            landmarks = SAMPLERS[sampler](tokens.size(-1), 4)(tokens, (28, 28))
            out = softmax_free_attention(tokens, landmarks, values)
            varies = (out - out.mean(-2, keepdim=True)).norm() / out.norm()
            of = found[sampler]
            of['kernel'].append(gaussian_kernel(landmarks, tokens).mean().item())
            of['gain'].append((out.norm() / values.norm()).item())
            of['varies'].append(varies.item())
    return found


START_MEASURES = {
    'kernel': 'mean of the kernel P',
    'gain': 'norm of the output over that of the values',
    'varies': 'share that differs between tokens',
}


def start_tables(numbers):
    rows = [
        [sampler, f'{spread:g}', *(f'{of[key][i]:.2g}' for key in START_MEASURES)]
        for sampler, of in numbers.items()
        for i, spread in enumerate(STARTS)
    ]
    caption = 'SOFT++ at its start: 784 tokens, 49 landmarks, values of noise'
    return [(caption, ['sampler', 'spread', *START_MEASURES.values()], rows)]


def start_panels(numbers):
    return [
        Panel(
            '',
            "spread of a token's channels",
            label,
            {sampler: (STARTS, [of[key]]) for sampler, of in numbers.items()},
            'log',
            'log',
        )
        for key, label in START_MEASURES.items()
    ]


FINDINGS = [
    Finding(
        'newton',
        "Newton's steps are a filter, and no inverse",
        """\
Every step has A's eigenvectors, so that twenty steps take an eigenvalue λ to g(λ) =
(1 - (1 - αλ²)^(2²⁰)) / λ. That is 1/λ for large eigenvalues, and α 2²⁰ λ for small
ones: what is below the cut-off λ_c, where λ g(λ) = ½, is left out. A ridge ρ, whose
filter is 1 / (λ + ρ), has its cut-off at ρ. With SOFT++'s step size, α = 2^(1-n) /
‖A‖₁² with n in 0 to 10, λ_c is 0.0006 to 0.02 of ‖A‖₁, the latter where tokens are
alike. It grows with the number of landmarks: a ridge that does not is a finer filter
on large maps.

A small residual ‖A A₂₀ A - A‖ / ‖A‖, which SOFT's Figure 5 shows, is a property of
steps of this size and not of landmarks: λ (1 - αλ²)^(2^T) is below 0.43 / √(α 2^T)
for any λ. The control, landmarks of noise that nothing has learned, has it too, and
where the largest error of the inverse is 100 %, the residual is still 0.005.""",
        measure_newton,
        newton_tables,
        newton_panels,
    ),
    Finding(
        'norms',
        "SOFT++'s normalization bounds the norm at a fixed ratio only",
        """\
Let all tokens be alike: A and P are of ones, A† is 11ᵀ / m², and so Ŝ = PᵀA†P is 11ᵀ,
of norm N. SOFT++ divides by the row sums, which are m: its norm is N / m, which is r²
where a landmark stands for r × r tokens, on maps of any size, and grows like N where
the number of landmarks is fixed. Tokens that differ have smaller norms, with the same
powers of N in the limit of fine maps.

The controls: softmax attention has a norm next to 1 whatever N is. With the exact
inverse or a ridge in place of the steps, norms differ little, by less than half: it
is the normalization that counts.""",
        measure_norms,
        norm_tables,
        norm_panels,
    ),
    Finding(
        'counts',
        'Softmax-free attention is linear at a fixed number of landmarks only',
        """\
With m landmarks, the products with P take 2NmC multiplications, each of twenty steps
2hm³, and a factorization with a ridge about hm³/3. At a fixed m, all is linear in N.
The models, though, have a landmark for each cell of r × r tokens: m = N / r², so that
P has N² / r² entries, and the steps take N³ / r⁶. On maps of 112 × 112 tokens with
SOFT++'s ratio of 8, they are half of the cost, and with a ratio of 4 nearly all: more
than softmax attention takes. With a ridge, it is 1.9 to 18 times cheaper there.

The controls: softmax attention has the exponent 2, efficient attention 1. These are
counts of what is written in the papers, by `mmlinattn.analysis.count_flops`; solvers
that take less time for the same result are in [Methods](methods.md).""",
        measure_counts,
        count_tables,
        count_panels,
    ),
    Finding(
        'frequencies',
        'Which attentions are low-pass filters',
        """\
If the rows of A sum to 1, it takes constants to themselves, and high frequencies
depend on high ones only: HC[AX] = HC A HC[X]. They fall with the powers of that part
of the matrix, for softmax and for every linear attention that is normalized.
AttnScale multiplies that part by exactly 1 + ω, and FeatScale by 1 + t; they differ
in what they do to the mean. Scaling both bands alike (s = t, the control) does
nothing. Where A has blocks, as windows and the local half of ELFATT, the means of
blocks stay. Where rows do not sum to 1, powers tend to the leading eigenvector, which
is not constant: SOFT and SOFT++ are no low-pass filters in this sense.

Weights are those that training starts from, tokens those of a made-up image of 14 ×
14. The controls: the mean of all tokens leaves nothing, the identity everything.""",
        measure_frequencies,
        frequency_tables,
        frequency_panels,
    ),
    Finding(
        'start',
        'Landmarks by convolution start far from all tokens',
        """\
SOFT's landmarks are GELU(LN(·)) of a convolution: whatever the tokens are, such a
landmark has the squared norm d E[GELU(z)²] = 0.425 d, 13.6 with the 32 channels of a
head. The queries of a fresh projection are next to 0. So the kernel is about
exp(-6.8) = 0.001 for all tokens alike: attention starts nearly switched off, and what
there is of it is the same for all tokens. Means of cells, and tokens that are drawn,
are next to the tokens; what they give is large, and as flat where tokens are alike.""",
        measure_start,
        start_tables,
        start_panels,
    ),
]
