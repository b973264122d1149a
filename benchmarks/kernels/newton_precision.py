"""Accuracy of Newton-Raphson's steps where products are sums of products of parts.

Emulated on the CPU: factors are split in parts of the precision that tensor cores
multiply, products of parts are exact, sums are float32, rounded or, with --truncate,
cut off after every 16 (float16, bfloat16) or 8 (TF32) terms, as tensor cores add. The
reference is the same steps in float64, applied to columns in A's range.

example:
  python benchmarks/kernels/newton_precision.py --out docs/benchmarks
"""

import argparse
import math
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import solver_inputs

from mmlinattn.functional import newton_alpha

STEPS = 20
# Name: precision and number of parts; the products left out are of parts i and j with
# i + j >= that number.
METHODS = {
    'float32': None,
    'float16, 2 parts': ('fp16', 2),
    'bfloat16, 2 parts': ('bf16', 2),
    'bfloat16, 3 parts': ('bf16', 3),
    'TF32, 2 parts': ('tf32', 2),
    'TF32': ('tf32', 1),
}
_TERMS = dict(fp16=16, bf16=16, tf32=8)
# SOFT-Tiny's stages at 800x1344: shape of the map, heads, side of a landmark's cell.
STAGES = {
    1: ((1, 64, 200, 336), 2, 8),
    2: ((1, 128, 100, 168), 4, 4),
    3: ((1, 320, 50, 84), 10, 2),
}


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


def product(x, y, method, scales, truncate):
    """x y in float32 from parts, side by side along the inner dimension.

    Args:
        x, y (Tensor): (m, m), float32.
        method (tuple): Precision and number of parts.
        scales (tuple[float]): Powers of two that keep float16 in its range.
        truncate (bool): Whether sums are cut off.
    """
    precision, parts = method
    x_parts = split(x * scales[0], precision, parts)
    y_parts = split(y * scales[1], precision, parts)
    # the smallest products first
    pairs = [(i, j) for i in range(parts) for j in range(parts) if i + j < parts]
    pairs.sort(key=sum, reverse=True)
    left = torch.cat([x_parts[i] for i, _ in pairs], 1)
    right = torch.cat([y_parts[j] for _, j in pairs], 0)
    out = _truncated(left, right, _TERMS[precision]) if truncate else left @ right
    return out / (scales[0] * scales[1])


def _truncated(x, y, terms):
    total = x.new_zeros(x.size(0), y.size(1))
    for k in range(0, x.size(1), terms):
        exact = total + x[:, k : k + terms].double() @ y[k : k + terms].double()
        total = exact.float()
        beyond = total.double().abs() > exact.abs()
        total[beyond] = total[beyond].nextafter(torch.zeros(()))
    return total


def apply_newton(a, x, alpha, method=None, thin=0, truncate=False):
    """The steps towards A's inverse, times x.

    Args:
        a (Tensor): (m, m).
        x (Tensor): (m, d).
        alpha (float): Step size.
        method (tuple, optional): See :func:`product`; without it plain products.
        thin (int): How many of the last steps are made on x instead of the matrix.
        truncate (bool): See :func:`product`.
    """
    y = alpha * a
    for step in range(STEPS - thin):
        if method is None:
            y = 2 * y - y @ a @ y
            continue
        # the spectral norm of y is at most 0.64 (alpha 2^step)^(1/2), but in the first
        # step; that of a y at most 2
        scale = 2.0 ** math.floor(13 - math.log2(1.5 * (alpha * 2**step) ** 0.5))
        scales = (scale, 2.0**13, 2.0**12) if method[0] == 'fp16' else (1, 1, 1)
        ya = product(y, a, method, scales[:2], truncate)
        y = 2 * y - product(ya, y, method, (scales[2], scales[0]), truncate)

    def apply(x, levels):
        if not levels:
            return y @ x
        once = apply(x, levels - 1)
        return 2 * once - apply(a @ once, levels - 1)

    return apply(x, thin)


def measure(truncate, matrices):
    """Relative errors (of the norm), one dict for each matrix and method."""
    rows = []
    for stage, (shape, heads, ratio) in STAGES.items():
        a, x = (
            t.detach()[0] for t in solver_inputs(shape, torch.float32, heads, ratio)
        )
        for i in range(min(matrices, heads)):
            alpha = newton_alpha(a[i]).item()
            right = apply_newton(a[i].double(), x[i].double(), alpha)
            cut_off = (alpha * 2**STEPS) ** -0.5
            eigenvalues = torch.linalg.eigvalsh(a[i].double())
            of_matrix = dict(
                stage=stage, eigenvalues=int((eigenvalues > cut_off).sum())
            )
            runs = {name: (method, 0) for name, method in METHODS.items()}
            for thin in (1, 2, 3):
                runs[f'float32, last {thin} thin'] = (None, thin)
                runs[f'float16, 2 parts, last {thin} thin'] = (('fp16', 2), thin)
            if truncate:
                runs = {name: runs[name] for name in list(METHODS)[1:5]}
            for name, (method, thin) in runs.items():
                found = apply_newton(a[i], x[i], alpha, method, thin, truncate)
                error = (found.double() - right).norm() / right.norm()
                rows.append(dict(of_matrix, method=name, error=error.item()))
                print(*rows[-1].values(), file=sys.stderr)
    return rows


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
    parser.add_argument('--out', type=Path, help='folder for newton_precision.md')
    args = parser.parse_args(argv)
    if args.matrices < 1:
        parser.error(f'--matrices must be at least 1, got {args.matrices}')
    rows = measure(args.truncate, args.matrices)
    page = render(rows, args.truncate)
    print(page)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        name = (
            'newton_precision_truncated.md' if args.truncate else 'newton_precision.md'
        )
        (args.out / name).write_text(page)


def render(rows, truncate):
    """The page: the largest error of each method in each stage."""
    sums = 'cut off as tensor cores do' if truncate else 'rounded'
    lines = [
        "# Newton's steps with products of parts",
        '',
        '**Emulated on a CPU**, by `benchmarks/kernels/newton_precision.py`: 20 steps, '
        f'sums in float32, {sums}; matrices of 1,050 landmarks of a smooth image. '
        'Relative error of the result times columns in the range of A, against the '
        'same steps in float64; the largest of the matrices of a stage.',
        '',
    ]
    stages = sorted({x['stage'] for x in rows})
    titles = ['products', *(f'stage {stage}' for stage in stages)]
    lines += [f'| {" | ".join(titles)} |', '| --- ' * len(titles) + '|']
    for name in dict.fromkeys(x['method'] for x in rows):
        errors = [
            max(x['error'] for x in rows if (x['stage'], x['method']) == (stage, name))
            for stage in stages
        ]
        lines.append(f'| {name} | {" | ".join(f"{e:.1e}" for e in errors)} |')
    above = sorted({x['eigenvalues'] for x in rows})
    lines += ['', f'Eigenvalues above the cut-off: {above[0]} to {above[-1]}.', '']
    return '\n'.join(lines)


if __name__ == '__main__':
    main()
