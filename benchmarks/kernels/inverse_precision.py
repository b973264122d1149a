"""Accuracy of the inverse by the precision of its products.

Emulated on the CPU: factors are split in parts of the precision that tensor cores
multiply, products of parts are exact, sums are float32, rounded or, with --truncate,
cut off after every 16 (float16, bfloat16) or 8 (TF32) terms, as tensor cores add. The
matrices are those of SOFT++-Tiny with random weights on a smooth image of 800x1344, in
evaluation and in training mode. The reference is Newton-Raphson's operator in float64,
by an eigendecomposition.

example:
  python benchmarks/kernels/inverse_precision.py --out docs/benchmarks
"""

import argparse
import sys
from functools import partial
from math import ceil, log2
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / 'side_by_side'))

from cases import natural_map

from mmlinattn import functional as F
from mmlinattn.functional.softmax_free.newton import newton_filter
from mmlinattn.functional.softmax_free.polynomial import (
    ACCURACIES,
    apply_polynomial,
    newton_polynomial,
    polynomial_powers,
    polynomial_within,
)
from mmlinattn.models.attentions import SoftmaxFreeAttention
from mmlinattn.models.backbones import SOFTPlusPlus
from mmlinattn.registry import MODELS
from mmlinattn.utils.cli import add_overwrite, protect

STEPS = 20
# Name: precision and number of parts. Products of parts i and j with i + j >= that
# number are left out.
PRODUCTS = {
    'float32': None,
    'float16, 2 parts': ('fp16', 2),
    'bfloat16, 2 parts': ('bf16', 2),
    'bfloat16, 3 parts': ('bf16', 3),
    'TF32': ('tf32', 1),
}
_TERMS = dict(fp16=16, bf16=16, tf32=8)


def split(x, precision, parts):
    """x as a sum of so many tensors of a precision, in float32."""
    found = []
    for _ in range(parts):
        if precision == 'tf32':
            part = ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
        else:
            dtype = torch.float16 if precision == 'fp16' else torch.bfloat16
            part = x.to(dtype).float()
        found.append(part)
        x = x - part
    return found


def product(x, y, method=None, truncate=False):
    """x y in float32, (1, m, m), of entries in [-1, 1].

    Args:
        x, y (Tensor): (1, m, m), float32.
        method (tuple, optional): Precision and number of parts.
        truncate (bool): Whether sums are cut off.
    """
    if method is None:
        return x @ y
    precision, parts = method
    scale = 2.0**15 if precision == 'fp16' else 1.0
    x_parts = split(scale * x[0], precision, parts)
    y_parts = split(scale * y[0], precision, parts)
    # the smallest products first
    pairs = [(i, j) for i in range(parts) for j in range(parts) if i + j < parts]
    pairs.sort(key=sum, reverse=True)
    left = torch.cat([x_parts[i] for i, _ in pairs], 1)
    right = torch.cat([y_parts[j] for _, j in pairs], 0)
    out = _truncated(left, right, _TERMS[precision]) if truncate else left @ right
    return out[None] / scale**2


def _truncated(x, y, terms):
    total = x.new_zeros(x.size(0), y.size(1))
    for k in range(0, x.size(1), terms):
        exact = total + x[:, k : k + terms].double() @ y[k : k + terms].double()
        total = exact.float()
        beyond = total.double().abs() > exact.abs()
        total[beyond] = total[beyond].nextafter(torch.zeros(()))
    return total


def newton(a, x, alpha, multiply):
    """Newton-Raphson's steps, then their result times x. Iterates are kept in units
    that have norms below 1."""
    right = alpha**0.5 * a / 2
    y, bound = right, 2.0
    for step in range(STEPS):
        following = 2.0 ** (1 + (step + 1) // 2)
        update = multiply(bound * multiply(y, right), y)
        y, bound = (2 * bound / following) * (y - update), following
    return alpha**0.5 * bound * (y @ x)


def polynomial(a, x, alpha, multiply):
    """The polynomial for them; products with columns are in float32."""
    found = newton_polynomial(STEPS, torch.float32)
    scale = (alpha / 2) ** 0.5

    def parabola(w, h):
        return 4 * h * w - 4 * h**2 * multiply(w, w)

    powers = polynomial_powers(found, scale * a, parabola)
    return apply_polynomial(found, scale, powers, x)


def kernels(a, x, alpha, halves):
    """The polynomial as the Triton kernels compute it: matrices and columns are kept as
    the sum of two float16 numbers, and multiplied as so many.

    Args:
        halves (int): 1 or 2.
    """
    accuracy = ACCURACIES[halves]
    heights, coefficients = polynomial_within(STEPS, accuracy.tolerance)

    def parts(x):
        return [part / 2.0**15 for part in split(2.0**15 * x, 'fp16', 2)]

    def times(w, b, exact):
        high, low = parts(b)
        out = w[0] @ low + w[0] @ high
        return out + w[1] @ high if exact else out

    powers = [parts((alpha / 2) ** 0.5 * a)]
    for h in heights:
        high, low = powers[-1]
        square = low @ high + high @ low + high @ high
        powers.append(parts(4 * h * (high + low - h * square)))
    norm = x.norm(dim=-2, keepdim=True)
    y = sum(parts(x / norm))
    for power, h in zip(powers, heights):
        y = sum(parts(y - h * times(power, y, True)))
        norm = 4 * h * norm
    lowest, *others, highest = coefficients
    unit = 2.0 ** -ceil(log2(sum(abs(c) * (i + 1) for i, c in enumerate(coefficients))))
    b, following = unit * highest * y, torch.zeros_like(y)
    for i, c in enumerate(reversed(others)):
        product = 4 * times(powers[-1], b, i >= accuracy.terms)
        b, following = sum(parts(product - 2 * b - following + unit * c * y)), b
    y = 2 * times(powers[-1], b, True) - b - following + unit * lowest * y
    return (alpha / 2) ** 0.5 * norm / unit * sum(parts(y))


WAYS = {'newton': newton, 'polynomial': polynomial}
KERNELS = {'one half': 1, 'two halves': 2}


@MODELS.register_module()
class Recorder(SoftmaxFreeAttention):
    """Keeps A (h, m, m) and what its inverse is applied to (h, m, d)."""

    def attend(self, q, k, v, hw_shape):
        heads = self.split_heads(q) / self.head_dims**0.25
        landmarks = self.sampler(heads, hw_shape)
        a = F.gaussian_kernel(landmarks)
        scale = a.sum(-1, keepdim=True).rsqrt()
        x = scale * F.gaussian_product(landmarks, heads, self.split_heads(v))
        self.recorded = a[0], x[0]
        return super().attend(q, k, v, hw_shape)


def matrices(training, shape):
    """For each softmax-free stage A and x of its last layer."""
    torch.manual_seed(0)
    attention = [
        dict(type='Recorder', sampling_ratio=ratio, kernel_size=size)
        for ratio, size in ((8, 9), (4, 5), (2, 3))
    ]
    model = SOFTPlusPlus(arch='tiny', attention=[*attention, None]).train(training)
    with torch.no_grad():
        model(natural_map((1, 3, *shape)))
    return [stage.blocks[-1].attn.recorded for stage in model.stages[:3]]


def measure(truncate, count, shape):
    """Relative errors (of the norm), one dict for each matrix and method."""
    rows = []
    for training in (False, True):
        for stage, (a, x) in enumerate(matrices(training, shape), 1):
            for i in range(min(count, len(a))):
                rows += list(errors(a[i : i + 1], x[i : i + 1], truncate, stage))
                for row in rows[-len(WAYS) * len(PRODUCTS) - len(KERNELS) :]:
                    row['training'] = training
    return rows


def errors(a, x, truncate, stage):
    """Of every way and product, for one matrix."""
    alpha = F.newton_alpha(a)
    exact = (a.double() + a.double().mT) / 2
    eigenvalues, vectors = torch.linalg.eigh(exact)
    filtered = newton_filter(eigenvalues.unsqueeze(-1), alpha.double(), STEPS)
    right = vectors @ (filtered * (vectors.mT @ x.double()))
    above = int((eigenvalues > (alpha[0, 0] * 2.0**STEPS) ** -0.5).sum())
    found = {
        (way, name): partial(
            apply, multiply=partial(product, method=method, truncate=truncate)
        )
        for way, apply in WAYS.items()
        for name, method in PRODUCTS.items()
    }
    for name, halves in KERNELS.items():
        found['kernels', name] = partial(kernels, halves=halves)
    for (way, name), apply in found.items():
        y = apply(a, x, alpha).double()
        row = dict(stage=stage, eigenvalues=above, way=way, products=name)
        row['error'] = ((y - right).norm() / right.norm()).item()
        print(*row.values(), file=sys.stderr)
        yield row


def render(rows, truncate, shape):
    """The page: the largest error of each method in each stage."""
    sums = 'cut off as tensor cores do' if truncate else 'rounded'
    lines = [
        '# The inverse by the precision of its products',
        '',
        '**Emulated on a CPU**, by `benchmarks/kernels/inverse_precision.py`: 20 '
        f"steps of Newton-Raphson, and the polynomial for them; products' sums in "
        f'float32, {sums}. `kernels` is the polynomial as the Triton kernels compute '
        f'it, with sums rounded. Matrices of SOFT++-Tiny with random weights on a '
        f'smooth image of {shape[0]}×{shape[1]}, in the last layer of each stage. '
        'Relative error of y, what the inverse makes of its right-hand side, against '
        "the steps' "
        'operator in float64; the largest of the matrices.',
        '',
    ]
    places = sorted({(x['training'], x['stage']) for x in rows})
    titles = ['way', 'products']
    titles += [
        f'{"training" if training else "evaluation"}, stage {stage}'
        for training, stage in places
    ]
    lines += [f'| {" | ".join(titles)} |', '| --- ' * len(titles) + '|']
    names = [(way, name) for way in WAYS for name in PRODUCTS]
    for way, name in [*names, *(('kernels', name) for name in KERNELS)]:
        cells = [
            max(
                x['error']
                for x in rows
                if (x['way'], x['products']) == (way, name)
                and (x['training'], x['stage']) == place
            )
            for place in places
        ]
        cells = ' | '.join(f'{x:.1e}' for x in cells)
        lines.append(f'| {way} | {name} | {cells} |')
    counts = [
        sorted({x['eigenvalues'] for x in rows if (x['training'], x['stage']) == place})
        for place in places
    ]
    lines.append(
        '| eigenvalues above the cut-off | | '
        + ' | '.join(f'{x[0]} to {x[-1]}' for x in counts)
        + ' |'
    )
    return '\n'.join([*lines, ''])


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        '--truncate', action='store_true', help='cut sums off (an hour)'
    )
    parser.add_argument(
        '--matrices', type=int, default=2, help='of each stage (default: 2)'
    )
    parser.add_argument(
        '--shape',
        type=int,
        nargs=2,
        default=(800, 1344),
        metavar=('H', 'W'),
        help='of the image (default: 800 1344)',
    )
    parser.add_argument('--out', type=Path, help='folder for inverse_precision.md')
    add_overwrite(parser)
    args = parser.parse_args(argv)
    name = f'inverse_precision{"_truncated" * args.truncate}.md'
    if args.out:
        protect(args, args.out / name)
    for name in ('matrices', 'shape'):
        value = getattr(args, name)
        if min(value if name == 'shape' else [value]) < 1:
            parser.error(f'--{name} must be at least 1, got {value}')
    rows = measure(args.truncate, args.matrices, args.shape)
    page = render(rows, args.truncate, args.shape)
    print(page)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / name).write_text(page)


if __name__ == '__main__':
    main()
