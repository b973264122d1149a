"""Errors of softmax-free attention on half-precision tokens, P in one or two halves.

Emulated on the CPU: entries of P and S and what they are multiplied by are rounded to
one float16 number or the sum of two, as the kernels round them, and everything else is
float64. The reference has nothing rounded but the inputs. Beside them stand errors
that half precision has anyway: of rounding the inputs, and of rounding outputs and
gradients. Needs Triton 3.

example:
  python benchmarks/kernels/half_precision.py --out docs/benchmarks
"""

import argparse
from pathlib import Path
from unittest.mock import patch

import torch
from torch.nn.functional import avg_pool2d, conv2d, gelu, layer_norm

from mmlinattn import functional as F
from mmlinattn.functional.softmax_free import attention, streaming
from mmlinattn.functional.softmax_free.triton import sweep
from mmlinattn.utils.cli import add_overwrite, protect

HW_SHAPE = (48, 64)
DIM = 32
CELL = 4
VARIANTS = {'SOFT++': dict(), 'SOFT': dict(normalize=False, ridge=0.01)}
DTYPES = (torch.bfloat16, torch.float16)
# Of an output by the values, in norms, to stand in the table.
SMALLEST = 1e-3
RESULTS = ('output', 'queries', 'landmarks', 'values')


class RoundedProducts(streaming.StreamedProducts):
    """:class:`~.products.Products` with whole matrices in float64, rounded and scaled
    where the kernels round and scale, and to float16 with its range.

    Args:
        halves (int): Float16 numbers that stand for an entry.
    """

    def __init__(self, halves):
        self.halves = halves

    def round(self, x):
        high = x.half().double()
        return high if self.halves == 1 else high + (x - high).half().double()

    def sweep(self, rows, columns, w, u=None):
        unit = 2.0 ** sweep._k_bits(sweep._padded(w.size(-1)))
        kernel = unit * _kernel(rows, columns)
        up = _scale(w.abs().amax(-2, keepdim=True), sweep._WEIGHT_BITS.value)
        w = self.round(w * up)
        out = self.round(kernel) @ w / up / unit
        if u is None:
            return out
        u = u / up
        row_up = _scale(u.abs().amax(-1, keepdim=True), -2)
        s = self.round(kernel * (self.round(u * row_up) @ w.mT)) / row_up / unit
        return out, s @ columns - s.sum(-1, keepdim=True) * rows

    def product(self, a, b, v):
        return self.sweep(a, b, v)

    def product_grad(self, a, b, v, grad):
        _, grad_a = self.sweep(a, b, v, grad)
        grad_v, grad_b = self.sweep(b, a, grad, v)
        return grad_a, grad_b, grad_v

    def joint_grad(self, a, b, v, y, grad_x, grad_out, x, grad_y):
        beside = torch.cat((v, grad_out), -1), torch.cat((grad_x, y), -1)
        grad_a, grad_b, grad_v = self.product_grad(a, b, *beside)
        return grad_a, grad_b, grad_v[..., : v.size(-1)]


def _kernel(a, b):
    return (-(a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1) / 2).exp()


def _scale(largest, bits):
    """The power of two that brings what is largest below 2 to the power of bits."""
    return torch.ldexp(torch.ones_like(largest), bits - torch.frexp(largest)[1])


def photo():
    """Tokens like a photograph's, (1, 1, N, d): amplitudes fall with the frequency."""
    height, width = HW_SHAPE
    rows, columns = torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)
    frequency = rows.hypot(columns).clamp_min(1 / max(HW_SHAPE))
    spectrum = torch.fft.rfft2(torch.randn(DIM, *HW_SHAPE)) / frequency
    maps = torch.fft.irfft2(spectrum, s=HW_SHAPE)
    maps = maps / maps.std((-1, -2), keepdim=True)
    return maps.flatten(1).mT[None, None]


def operands():
    """Queries, landmarks and values by name."""
    smooth, noise = photo(), torch.randn(1, 1, HW_SHAPE[0] * HW_SHAPE[1], DIM)
    found = {}
    for name, tokens in {
        'smooth': smooth,
        'smooth, small': smooth / 4,
        'smooth, large': 4 * smooth,
        'noise': noise,
        'nearly equal': 1 + smooth / 100,
        'of rank 2': smooth[..., :2] @ torch.randn(2, DIM),
    }.items():
        q = tokens / DIM**0.25
        maps = q[0].mT.unflatten(-1, HW_SHAPE)
        averaged = avg_pool2d(maps, CELL)
        filters = torch.randn(DIM, DIM, CELL, CELL) / (DIM * CELL**2) ** 0.5
        convolved = conv2d(maps, filters, stride=CELL)
        convolved = gelu(layer_norm(convolved.flatten(2).mT, (DIM,)))[None]
        v = torch.randn_like(q)
        found[f'{name}, averaged'] = q, averaged.flatten(2).mT[None], v
        found[f'{name}, convolved'] = q, convolved, v
    return found


def run(inputs, grad, products, **options):
    """Output and gradients in float64, the inverse by eigenvalues."""
    inputs = [x.double().requires_grad_() for x in inputs]
    with patch.object(attention, 'pick_products', lambda *_, parts=2: products[parts]):
        out = F.softmax_free_attention(
            *inputs, keep_kernel=False, solver='spectral', **options
        )
        return [out.detach(), *torch.autograd.grad(out, inputs, grad)]


def measure():
    """Relative errors (of the norm), one dict for each variant, dtype and operands."""
    torch.manual_seed(0)
    rows = []
    two = RoundedProducts(2)
    one = {1: RoundedProducts(1), 2: two}
    exact = dict.fromkeys((1, 2), streaming.StreamedProducts())
    for inputs in operands().values():
        grad = torch.randn_like(inputs[0])
        for variant, options in VARIANTS.items():
            for dtype in DTYPES:
                half = [x.to(dtype) for x in inputs]
                right = run(half, grad, exact, **options)
                size = (right[0].norm() / half[2].double().norm()).item()
                for what, found in {
                    'inputs rounded': run(inputs, grad, exact, **options),
                    'results rounded': [x.to(dtype) for x in right],
                    'one half': run(half, grad, one, **options, halves=1),
                    'two halves': run(half, grad, one, **options, halves=2),
                }.items():
                    errors = [
                        ((x.double() - y).norm() / y.norm()).item()
                        for x, y in zip(found, right)
                    ]
                    row = dict(variant=variant, dtype=str(dtype)[6:], size=size)
                    rows.append(dict(row, what=what, **dict(zip(RESULTS, errors))))
    return rows


def render(rows):
    """The page: the median and the largest error over all tokens."""
    lines = [
        '# P in one or two halves',
        '',
        '**Emulated on a CPU** in float64, by `benchmarks/kernels/half_precision.py`: '
        f'{HW_SHAPE[0]} × {HW_SHAPE[1]} tokens of {DIM} channels, smooth, noise, '
        'nearly equal, far apart and of rank 2, with averaged and with convolved '
        f'landmarks of {CELL} × {CELL} tokens. Relative errors (of the norm) of the '
        'output and of the gradients: the median of all tokens and the largest.',
        *_far_apart(rows),
        '',
        f'| variant | tokens | error of | {" | ".join(RESULTS)} |',
        f'| --- | --- | --- |{" --- |" * len(RESULTS)}',
    ]
    rows = [x for x in rows if x['size'] >= SMALLEST]
    groups = dict.fromkeys((x['variant'], x['dtype'], x['what']) for x in rows)
    for group in sorted(groups, key=lambda x: x[:2], reverse=True):
        here = [x for x in rows if (x['variant'], x['dtype'], x['what']) == group]
        cells = []
        for result in RESULTS:
            errors = torch.tensor([x[result] for x in here])
            cells.append(f'{errors.median():.1e}, {errors.max():.1e}')
        lines.append(f'| {" | ".join((*group, *cells))} |')
    return '\n'.join((*lines, ''))


def _far_apart(rows):
    """What is not in the table: outputs of next to nothing."""
    rows = [x for x in rows if x['size'] < SMALLEST]
    if not rows:
        return []
    two = [x[result] for x in rows if x['what'] == 'two halves' for result in RESULTS]
    return [
        '',
        'Not in the table are tokens so far from all landmarks that the output is '
        f'below {SMALLEST:.0e} of the values: entries of P leave '
        f"float16's range there, and two halves too have errors of {max(two):.0e}.",
    ]


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--out', type=Path, help='folder for half_precision.md')
    add_overwrite(parser)
    args = parser.parse_args(argv)
    if args.out:
        protect(args, args.out / 'half_precision.md')
    page = render(measure())
    print(page)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / 'half_precision.md').write_text(page)


if __name__ == '__main__':
    main()
