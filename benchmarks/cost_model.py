"""Models what softmax-free attention costs a GPU, by FLOPs, bytes and launches.

Nothing here is measured: no GPU was there. A step of a layer takes the longest of its
arithmetic, its memory traffic and its kernel launches; each at a share of the card's
peak that large kernels usually reach. The model ranks the ways to apply A's inverse
(the 20 Newton-Raphson steps of the papers, or the same operator by other means), and
compares them with the rest of the model. Deflation and the product form in float64 are
modelled only: the package has neither on a GPU.

Legend: B batch, h heads, N tokens, m landmarks, d head dim, n = B h matrices, T steps.

examples:
  python benchmarks/cost_model.py
  python benchmarks/cost_model.py --card h100 --batch 16 --eigenpairs 200
  python benchmarks/cost_model.py --out docs/benchmarks
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from math import ceil
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from mmlinattn.analysis import count_flops
from mmlinattn.functional.softmax_free.polynomial import (
    ACCURACIES,
    KEPT,
    newton_polynomial,
    polynomial_within,
)
from mmlinattn.models.attentions import SoftmaxFreeAttention
from mmlinattn.models.backbones import SOFTPlusPlus
from mmlinattn.registry import MODELS
from mmlinattn.utils.cli import add_overwrite, protect

# Shares of the peak that a large product, a large copy and a sweep reach, seconds
# that a launch takes where kernels are short, and that a wait for the GPU costs.
GEMM_SHARE, COPY_SHARE, SWEEP_SHARE = 0.7, 0.8, 0.6
LAUNCH, SYNC = 4e-6, 25e-6

DIM, STEPS = 32, 20
PRECISIONS = ('fp64', 'fp32', 'tf32', 'fp16')


@dataclass(frozen=True)
class Card:
    """Peaks of a GPU, dense, from its maker's documents.

    Attributes:
        name (str): What it is called.
        tflops (dict[str, float]): Of products by ``PRECISIONS``, tensor cores
            where they do it; 'fp16' with sums in float32.
        bandwidth (float): Of its memory, bytes/s.
        processors (int): Multiprocessors.
        clock (float): Hz under boost.
        source (str): Where the peaks stand.
    """

    name: str
    tflops: dict
    bandwidth: float
    processors: int
    clock: float
    source: str


CARDS = {
    'a100': Card(
        'A100 SXM 80 GB',
        dict(fp64=19.5, fp32=19.5, tf32=156, fp16=312),
        2.039e12,
        108,
        1.41e9,
        'NVIDIA A100 Tensor Core GPU data sheet; architecture white paper (GA100)',
    ),
    'h100': Card(
        'H100 SXM',
        dict(fp64=67, fp32=67, tf32=494.7, fp16=989.4),
        3.35e12,
        132,
        1.83e9,
        'NVIDIA H100 Tensor Core GPU data sheet; architecture white paper (GH100)',
    ),
    'h200': Card(
        'H200 SXM',
        dict(fp64=67, fp32=67, tf32=494.7, fp16=989.4),
        4.8e12,
        132,
        1.83e9,
        'NVIDIA H200 Tensor Core GPU data sheet',
    ),
    'rtx4090': Card(
        'RTX 4090',
        dict(fp64=1.29, fp32=82.6, tf32=82.6, fp16=165.2),
        1.008e12,
        128,
        2.52e9,
        'NVIDIA Ada GPU architecture white paper, appendix A (AD102)',
    ),
}


@dataclass
class Cost:
    """What a computation takes of a GPU.

    Attributes:
        flops (Counter): Of products by precision, two for a multiply-accumulate.
        bytes (float): Read and written.
        launches (float): Kernels.
        syncs (float): Times that the host waits for the GPU.
        entries (list): Of kernel matrices in sweeps: how many, multiply-accumulates
            on float16 tensor cores and instructions for each.
    """

    flops: Counter = field(default_factory=Counter)
    bytes: float = 0
    launches: float = 0
    syncs: float = 0
    entries: list = field(default_factory=list)

    def __add__(self, other):
        return Cost(
            self.flops + other.flops,
            self.bytes + other.bytes,
            self.launches + other.launches,
            self.syncs + other.syncs,
            self.entries + other.entries,
        )

    def __mul__(self, times):
        return Cost(
            Counter({k: times * v for k, v in self.flops.items()}),
            times * self.bytes,
            times * self.launches,
            times * self.syncs,
            [(times * count, macs, issued) for count, macs, issued in self.entries],
        )

    __rmul__ = __mul__

    def seconds(self, card):
        """Modelled time on a card."""
        gemm = sum(
            count / (card.tflops[precision] * 1e12 * GEMM_SHARE)
            for precision, count in self.flops.items()
        )
        gemm += sum(
            count * self._entry(card, macs, issued)
            for count, macs, issued in self.entries
        )
        copy = self.bytes / (card.bandwidth * COPY_SHARE)
        return max(gemm, copy, self.launches * LAUNCH) + self.syncs * SYNC

    @staticmethod
    def _entry(card, macs, issued):
        """Seconds of an entry: tensor cores, 4 schedulers of 32 lanes and 16 units
        for exp work side by side."""
        clocks = max(
            2 * macs * card.processors * card.clock / (card.tflops['fp16'] * 1e12),
            issued / 128,
            1 / 16,
        )
        return clocks / (card.processors * card.clock * SWEEP_SHARE)


def product(rows, inner, cols, matrices, precision, width=4):
    """A batched matrix product in one launch."""
    return Cost(
        Counter({precision: 2 * rows * inner * cols * matrices}),
        width * matrices * (rows * inner + inner * cols) + 4 * matrices * rows * cols,
        1,
    )


def elementwise(entries, reads, writes, launches=1):
    """Kernels that read and write so many bytes for each entry."""
    return Cost(bytes=entries * (reads + writes), launches=launches)


# The ways to apply the inverse. Each takes m, n and d, the number of eigenvalues above
# the cut-off, and the number of times that the result is applied to (m, d) columns.


def newton_fp32(m, n, d, eigenpairs, applications):
    """Literal steps in float32: two products of m x m each, with ``baddbmm``."""
    # baddbmm reads what it adds to
    step = 2 * product(m, m, m, n, 'fp32') + elementwise(n * m * m, 4, 0, 0)
    return STEPS * step + applications * product(m, m, d, n, 'fp32')


# Bytes read and written for each entry, and kernels, by what makes float16 parts of a
# matrix, and what puts them side by side three times.
PARTS, CAT = (18, 12, 4), (6, 6, 1)


def newton_split(m, n, d, eigenpairs, applications):
    """Every factor in two parts, three products of parts in one: inner size 3 m."""
    step = 2 * product(m, 3 * m, m, n, 'fp16', 2)
    for part in 3 * (PARTS, CAT):
        step += elementwise(n * m * m, *part)
    # both products and the iterate are scaled, and the new iterate is summed up
    step += elementwise(n * m * m, 24, 20, 5)
    return STEPS * step + applications * product(m, m, d, n, 'fp32')


def polynomial(m, n, d, eigenpairs, applications, parabola):
    """As :mod:`mmlinattn.functional.softmax_free.polynomial`: parabolas of m x m,
    then products with the columns, with an element-wise operation on them for each
    coefficient.

    Args:
        parabola (Cost): One.
    """
    heights, coefficients = newton_polynomial(STEPS, torch.float32)
    prepare = len(heights) * parabola + elementwise(n * m * m, 8, 8, 3)
    thin, columns = product(m, m, d, n, 'fp32'), n * m * d

    def times(k):
        return thin if k % KEPT == 0 else factor(k - 1) + times(k - 1)

    def factor(k):
        if k % KEPT == 0:
            return thin + elementwise(columns, 4, 0, 0)
        return times(k) + elementwise(columns, 12, 8, 2)

    apply = elementwise(columns, 4, 4)
    for k in range(len(heights)):
        apply += factor(k)
    # Clenshaw's sums, what baddbmm adds to, and two first terms
    terms = len(coefficients) - 1
    apply += terms * (thin + elementwise(columns, 12, 4))
    apply += elementwise(columns, 4, 8, 2)
    return prepare + applications * apply


def polynomial_fp32(m, n, *args):
    parabola = product(m, m, m, n, 'fp32') + elementwise(n * m * m, 4, 0, 0)
    return polynomial(m, n, *args, parabola=parabola)


def polynomial_split(m, n, *args):
    """Two products of parts, as PyTorch runs it: sums of matrices in between."""
    parabola = 2 * product(m, m, m, n, 'fp16', 2)
    parabola += elementwise(n * m * m, *PARTS) + elementwise(n * m * m, 28, 16, 4)
    return polynomial(m, n, *args, parabola=parabola)


def polynomial_kernels(m, n, d, eigenpairs, applications, halves):
    """As :mod:`mmlinattn.functional.softmax_free.triton.polynomial` runs it.

    Both factors of a parabola, and what it is added to, are one matrix, which is read
    once; the blocks on one side of the diagonal are computed. Columns are written in
    halves, and read once for all rows.

    Args:
        halves (int): 1 or 2.
    """
    accuracy = ACCURACIES[halves]
    heights, coefficients = polynomial_within(STEPS, accuracy.tolerance)
    size = 64 * ceil(m / 64)
    blocks = ceil(m / 128)
    pairs = blocks * (blocks + 1) // 2
    cost = elementwise(n * m * m, 4, 0) + elementwise(n * size**2, 0, 4, 0)
    flops = 3 * 2 * 128 * 128 * size * pairs * n
    cost += len(heights) * Cost(Counter(fp16=flops), 8 * n * size**2, 1)

    def columns(exact, others):
        flops = (3 if exact else 2) * 2 * size * size * d * n
        moved = n * size * (size * (4 if exact else 2) + 4 * d * (2 + others))
        return Cost(Counter(fp16=flops), moved, 1)

    # norms and halves of the columns, and the way back
    apply = elementwise(n * m * d, 32, 16, 10)
    apply += len(heights) * columns(True, 0)
    for i in range(len(coefficients) - 1):
        apply += columns(i >= accuracy.terms, 2 if i else 0)
    return cost + applications * apply


def fp64_product_form(m, n, d, eigenpairs, applications):
    r""":math:`\alpha A \prod_k (I + (I - \alpha A^2)^{2^k})` in float64: one product
    of m x m a step, and one with the columns."""
    powers = (STEPS + 1) * product(m, m, m, n, 'fp64', 8)
    thin = (STEPS + 1) * product(m, m, d, n, 'fp64', 8)
    # the columns' factors want the powers kept, 8 bytes each
    return powers + applications * thin


def deflation(m, n, d, eigenpairs, applications, precision='fp32', block=32):
    """Block Krylov for all matrices at once; None where the basis would not pay.

    The basis is 2.75 columns for an eigenpair wanted, as the CPU's block Lanczos
    found. Blocks are orthogonalized twice against the basis and made orthonormal by
    two passes of Cholesky-QR; Newton's steps run in the basis; the rest of A is left
    to a polynomial of degree 4 in its square. One check of the residual a layer.
    """
    basis = block * ceil(max(96, 2.75 * eigenpairs) / block)
    if basis > m / 2:
        return None
    cost = Cost(syncs=1)
    for size in range(block, basis + 1, block):
        cost += product(m, m, block, n, precision)
        # coefficients and their subtraction, twice
        cost += 2 * product(size, m, block, n, 'fp32')
        cost += 2 * product(m, size, block, n, 'fp32')
        # Gram matrix, factor, triangular solve, twice
        cost += 2 * product(block, m, block, n, 'fp32')
        cost += 2 * product(m, block, block, n, 'fp32')
        cost += Cost(launches=2)
    cost += STEPS * 2 * product(basis, basis, basis, n, 'fp32')
    # Ritz vectors and the rest of A
    cost += product(m, basis, eigenpairs, n, 'fp32')
    cost += product(m, eigenpairs, m, n, 'fp32')
    degree = 4
    apply = (2 * degree + 1) * product(m, m, d, n, 'fp32')
    apply += 5 * product(m, eigenpairs, d, n, 'fp32')
    return cost + applications * apply


INVERSES = {
    'newton-fp32': newton_fp32,
    'newton-split': newton_split,
    'polynomial-fp32': polynomial_fp32,
    'polynomial-split': polynomial_split,
    'polynomial, two halves': partial(polynomial_kernels, halves=2),
    'polynomial, one half': partial(polynomial_kernels, halves=1),
    'fp64 product form': fp64_product_form,
    'deflation': deflation,
}


@dataclass(frozen=True)
class Layers:
    """Softmax-free attentions of one size in a model.

    Attributes:
        stage (int): Which of the model's.
        count (int): Layers.
        matrices (int): n.
        tokens (int): N.
        landmarks (int): m.
    """

    stage: int
    count: int
    matrices: int
    tokens: int
    landmarks: int


# By arch, of SOFT++ (IJCV 2024): depths and heads of the softmax-free stages.
ARCHS = {
    'tiny': ((2, 2, 5), (2, 4, 8)),
    'small': ((2, 2, 5), (3, 6, 12)),
    'medium': ((2, 2, 18), (3, 6, 12)),
    'large': ((2, 2, 18), (4, 8, 16)),
}


def softmax_free_layers(arch, shape, batch):
    """The :class:`Layers` of SOFT++ on images of a shape (H, W)."""
    out = []
    for stage, (depth, heads) in enumerate(zip(*ARCHS[arch])):
        sides = [ceil(side / 2 ** (stage + 2)) for side in shape]
        ratio = 2 ** (3 - stage)
        landmarks = [max(side // ratio, 1) for side in sides]
        out.append(
            Layers(
                stage + 1,
                depth,
                batch * heads,
                sides[0] * sides[1],
                landmarks[0] * landmarks[1],
            )
        )
    return out


def sweeps(layers, half, training, instructions):
    """Both products with P and, in training, their gradients and that of A.

    Args:
        layers (Layers): Which.
        half (bool): Half precision all through; float32 is three products of parts.
        training (bool): With the backward pass.
        instructions (dict): By 'forward', 'gradient' and 'both': issued for each
            entry of a kernel matrix.
    """
    entries = layers.matrices * layers.tokens * layers.landmarks
    parts = 1 if half else 3
    cost = Cost(launches=2 * 4)
    tokens = layers.matrices * (layers.tokens + layers.landmarks) * DIM
    cost.bytes = 2 * tokens * (12 if half else 24)
    forward = (entries, parts * 2 * DIM, instructions['forward'])
    cost.entries = 2 * [forward]
    if training:
        # grad of y; then rows of either side, with two weights at once
        gradient = (entries, parts * 4 * DIM, instructions['gradient'])
        both = (entries, parts * 6 * DIM, instructions['both'])
        cost.entries += [forward, gradient, both]
        cost.launches += 4 + 8
        cost.bytes *= 4
    return cost


def inverse(name, layers, eigenpairs, training):
    """A layer's inverse by one of ``INVERSES``, A itself included; or None."""
    m, n = layers.landmarks, layers.matrices
    cost = INVERSES[name](m, n, DIM, min(eigenpairs, m), 2 if training else 1)
    if cost is None:
        return None
    # A by differences of tokens, two row sums, and two more for the step size
    distances = Cost(Counter(fp32=4 * m * m * DIM * n))
    return cost + distances + elementwise(n * m * m, 16, 4, 20)


class _Traffic(TorchDispatchMode):
    """Bytes that operators read and write, one kernel each; views are free."""

    def __init__(self):
        super().__init__()
        self.cost = Cost()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        before, after = (
            [x for x in tree_flatten(y)[0] if torch.is_tensor(x)]
            for y in ((args, kwargs), out)
        )
        storages = {x.untyped_storage()._cdata for x in before}
        view = any(x.untyped_storage()._cdata in storages for x in after)
        if func._schema.is_mutable or not (view or 'empty' in func.__name__):
            self.cost.bytes += sum(x.numel() * x.element_size() for x in before + after)
            self.cost.launches += 1
        return out


@MODELS.register_module()
class LandmarksOnly(SoftmaxFreeAttention):
    """All of softmax-free attention but the attention itself."""

    def attend(self, q, k, v, hw_shape):
        self.sampler(self.split_heads(q) / self.head_dims**0.25, hw_shape)
        return v


def rest_of_model(arch, shape, batch, half, training):
    """All of SOFT++ but its softmax-free attention: counted, on the meta device.

    A backward pass is taken to be twice a forward pass.
    """
    with torch.device('meta'):
        model = SOFTPlusPlus(arch=arch).eval()
        attention = [
            dict(type='LandmarksOnly', sampling_ratio=ratio, kernel_size=size)
            for ratio, size in ((8, 9), (4, 5), (2, 3))
        ]
        without = SOFTPlusPlus(arch=arch, attention=[*attention, None]).eval()
        image = torch.empty(1, 3, *shape)
    kinds = count_flops(model, image).by_kind()
    macs = sum(kinds.values()) - kinds['gaussian_kernel'] - kinds['pseudo_inverse']
    with torch.no_grad(), _Traffic() as traffic:
        without(image)
    cost = traffic.cost
    # float32 is what PyTorch's default settings give products; convolutions are few
    cost.flops = Counter({'fp16' if half else 'fp32': 2 * macs * batch})
    cost.bytes *= batch / (2 if half else 1)
    return cost * 3 if training else cost


# Compute capabilities of the cards, by which instructions were counted.
CAPABILITIES = dict(a100=80, h100=90, h200=90, rtx4090=89)
COMPILED = Path(__file__).parents[1] / 'docs/benchmarks/kernels_compiled.json'


def instructions(card, half):
    """Issued for each entry of a kernel matrix, by kind of sweep, as compiled."""
    kind = 'half' if half else 'float32'
    wanted = {'forward': (32, 'out'), 'gradient': (64, 'grad'), 'both': (64, 'both')}
    found = {
        (x['value_dim'], x['wanted']): x['instructions']
        for x in json.loads(COMPILED.read_text())['kernels']
        if (x['capability'], x['operands'], x['dim']) == (CAPABILITIES[card], kind, 32)
    }
    return {name: found[key] for name, key in wanted.items()}


def model_rows(args):
    """Milliseconds of whole models by part, one row for each model and card."""
    rows = []
    for arch, shape in args.models:
        layers = softmax_free_layers(arch, shape, args.batch)
        rest = rest_of_model(arch, shape, args.batch, args.half, args.training)
        for key in args.cards:
            card = CARDS[key]
            issued = instructions(key, args.half)
            row = dict(arch=arch, shape=shape, card=key)
            row['rest'] = 1e3 * rest.seconds(card)
            row['sweeps'] = 1e3 * sum(
                x.count * sweeps(x, args.half, args.training, issued).seconds(card)
                for x in layers
            )
            row['inverses'] = {}
            for name in INVERSES:
                costs = [
                    inverse(name, x, args.eigenpairs, args.training) for x in layers
                ]
                if all(costs):
                    row['inverses'][name] = 1e3 * sum(
                        x.count * cost.seconds(card) for x, cost in zip(layers, costs)
                    )
            rows.append(row)
    return rows


def layer_rows(args):
    """One layer of each stage of the first model, by way to apply the inverse."""
    arch, shape = args.models[0]
    rows = []
    for layers in softmax_free_layers(arch, shape, args.batch):
        for name in INVERSES:
            cost = inverse(name, layers, args.eigenpairs, args.training)
            if cost is None:
                continue
            row = dict(asdict(layers), arch=arch, shape=shape, inverse=name)
            row['gflops'] = {x: cost.flops[x] / 1e9 for x in PRECISIONS}
            row.update(bytes=cost.bytes, launches=cost.launches, syncs=cost.syncs)
            row['ms'] = {x: 1e3 * cost.seconds(CARDS[x]) for x in args.cards}
            rows.append(row)
    return rows


def render(args, layers, models):
    """The page: assumptions, layers, models."""
    step = 'training step' if args.training else 'forward pass'
    precision = 'half precision' if args.half else 'float32'
    lines = [
        '# What softmax-free attention should cost a GPU',
        '',
        '**Modelled, not measured**: by `benchmarks/cost_model.py`, from FLOPs, bytes '
        'and launches. Large products are taken to reach '
        f'{GEMM_SHARE:.0%} of the peak, copies {COPY_SHARE:.0%}, sweeps over P '
        f'{SWEEP_SHARE:.0%}; a launch {LAUNCH * 1e6:.0f} µs, a wait for the GPU '
        f'{SYNC * 1e6:.0f} µs. Instructions of a sweep are those of '
        '[the compiled kernels](kernels_compiled.md).',
        '',
        f'Here: {step}, batch {args.batch}, the inverse in float32 and all else in '
        f'{precision}, {args.eigenpairs} eigenvalues above the cut-off of each A.',
        '',
        '## Peaks',
        '',
    ]
    cells = [
        [
            card.name,
            *(f'{card.tflops[x]:g}' for x in PRECISIONS),
            f'{card.bandwidth / 1e12:g}',
            str(card.processors),
            f'{card.clock / 1e9:g}',
            card.source,
        ]
        for card in map(CARDS.get, args.cards)
    ]
    titles = ['card', *(f'{x}, TFLOP/s' for x in PRECISIONS)]
    titles += ['memory, TB/s', 'SMs', 'GHz', 'source']
    lines += [markdown(titles, cells), '', '## The inverse of one layer', '']
    cells = [
        [
            f'{x["stage"]}: {x["matrices"]} of {x["landmarks"]}',
            x['inverse'],
            *(f'{x["gflops"][p]:.0f}' for p in PRECISIONS),
            f'{x["bytes"] / 1e9:.2f}',
            f'{x["launches"]:.0f}',
            f'{x["syncs"]:.0f}',
            *(f'{x["ms"][card]:.2f}' for card in args.cards),
        ]
        for x in layers
    ]
    titles = ['stage: matrices', 'inverse', *(f'{p}, GFLOP' for p in PRECISIONS)]
    titles += ['GB', 'launches', 'syncs', *(f'{x}, ms' for x in args.cards)]
    lines += [markdown(titles, cells), '', '## Whole models', '']
    lines += [
        'Milliseconds, and in brackets the inverses over all the rest of the model, '
        'sweeps included. The fastest inverse is bold. On a GPU the package '
        "has neither the product form nor deflation. `solver='auto'` takes one half "
        'with half precision, two with float32.',
        '',
    ]
    cells = []
    for row in models:
        others = row['rest'] + row['sweeps']
        best = min(row['inverses'].values())
        cells.append(
            [
                f'SOFT++ {row["arch"]}, {"×".join(map(str, row["shape"]))}',
                row['card'],
                f'{row["rest"]:.1f}',
                f'{row["sweeps"]:.1f}',
                *(_ratio(row['inverses'].get(name), others, best) for name in INVERSES),
            ]
        )
    titles = ['model', 'card', 'rest', 'sweeps', *INVERSES]
    return '\n'.join([*lines, markdown(titles, cells), ''])


def _ratio(ms, others, best):
    if ms is None:
        return 'basis too large'
    text = f'{ms:.1f} ({ms / others:.2f}x)'
    return f'**{text}**' if ms == best else text


def markdown(titles, lines):
    rows = [titles, ['---'] * len(titles), *lines]
    return '\n'.join(f'| {" | ".join(row)} |' for row in rows)


def parse_args(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        '--card',
        dest='cards',
        nargs='+',
        choices=CARDS,
        default=list(CARDS),
        help='which cards (default: all)',
    )
    parser.add_argument(
        '--model',
        dest='models',
        nargs='+',
        type=_model,
        default=[
            ('tiny', (800, 1344)),
            ('small', (800, 1344)),
            ('tiny', (512, 512)),
            ('tiny', (224, 224)),
        ],
        metavar='ARCH:HxW',
        help='SOFT++ and its input, as in tiny:800x1344',
    )
    parser.add_argument('--batch', type=int, default=2, help='images (default: 2)')
    parser.add_argument(
        '--eigenpairs',
        type=int,
        default=100,
        help='of each A above the cut-off: 13 to 91 on images in evaluation, 94 to '
        '500 in training mode of an untrained model (default: 100)',
    )
    parser.add_argument(
        '--forward', dest='training', action='store_false', help='no backward pass'
    )
    parser.add_argument(
        '--float32', dest='half', action='store_false', help='no half precision'
    )
    parser.add_argument(
        '--out', type=Path, help='folder for cost_model.md and cost_model.json'
    )
    add_overwrite(parser)
    args = parser.parse_args(argv)
    if args.out:
        protect(args, args.out / 'cost_model.md', args.out / 'cost_model.json')
    for name in ('batch', 'eigenpairs'):
        if getattr(args, name) < 1:
            parser.error(f'--{name} must be at least 1, got {getattr(args, name)}')
    return args


def _model(text):
    arch, _, shape = text.partition(':')
    sides = shape.split('x')
    if arch not in ARCHS or len(sides) != 2 or not all(map(str.isdigit, sides)):
        raise argparse.ArgumentTypeError(
            f'must be one of {", ".join(ARCHS)} and a size, as in tiny:800x1344, '
            f'got {text!r}'
        )
    return arch, tuple(map(int, sides))


def main(argv=None):
    args = parse_args(argv)
    if not COMPILED.is_file():
        print(
            f'{COMPILED} is missing: benchmarks/kernels/compiled.py writes it',
            file=sys.stderr,
        )
        sys.exit(2)
    layers, models = layer_rows(args), model_rows(args)
    page = render(args, layers, models)
    print(page)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / 'cost_model.md').write_text(page)
        record = dict(
            batch=args.batch,
            half=args.half,
            training=args.training,
            eigenpairs=args.eigenpairs,
            cards={key: asdict(CARDS[key]) for key in args.cards},
            layers=layers,
            models=models,
        )
        (args.out / 'cost_model.json').write_text(json.dumps(record, indent=1))


if __name__ == '__main__':
    main()
