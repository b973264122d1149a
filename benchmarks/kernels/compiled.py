"""Compiles the kernels for GPUs that need not be there, and counts.

What ptxas says of registers, stack (spilled registers) and shared memory, and how many
instructions the inner loop of a sweep issues for each entry of the kernel matrix that
a thread computes. Needs Triton 3.4 or later, which brings the compiler and the
disassembler.

example:
  python benchmarks/kernels/compiled.py --out docs/benchmarks
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler import compile as triton_compile

from mmlinattn.functional.softmax_free.triton import polynomial
from mmlinattn.functional.softmax_free.triton import sweep as gaussian
from mmlinattn.utils.cli import add_overwrite, protect

CAPABILITIES = (80, 89, 90, 100)
DIMS = ((32, 32), (32, 64), (64, 64), (64, 128), (96, 96), (128, 128))
# Dtypes of tokens and of weights, on both sides, and parts of K, S and weights.
OPERANDS = {
    'float32': ('fp32', 'fp32', 2),
    'half': ('bf16', 'bf16', 1),
    'half tokens, two halves': ('bf16', 'fp32', 2),
    'half, float32 tokens': ('fp32', 'bf16', 1),
}
WANTED = {'out': (True, False), 'grad': (False, True), 'both': (True, True)}
# Shared memory of a block on the GPUs of a capability, KiB.
SHARED = {80: 163, 89: 99, 90: 227, 100: 227}
_BINARIES = Path(triton.__file__).parent / 'backends/nvidia/bin'
# Arguments whose values the launcher does not look at.
_NOT_SPECIALIZED = ('heads', 'matrices', 'num_rows', 'padded_cols', 'chunk')


def compile_sweep(capability, operands, dim, value_dim, wanted):
    """Compiles a sweep as a launch with large aligned tensors would.

    Args:
        capability (int): Compute capability times ten.
        operands (str): One of ``OPERANDS``.
        dim (int): Head dim.
        value_dim (int): Channels of the weights.
        wanted (str): One of ``WANTED``.

    Returns:
        tuple: What Triton compiled, and the configuration.
    """
    tokens, weights, parts = OPERANDS[operands]
    want_out, want_grad = WANTED[wanted]
    of_tokens, of_weights = (1 + (x == 'fp32') for x in (tokens, weights))
    padded = gaussian._padded(dim), gaussian._padded(value_dim)
    config = gaussian._block_config(max(padded), 2**20, parts, capability)
    options = {x: config[x] for x in ('num_warps', 'num_stages')}
    constants = dict(
        DIM=dim,
        VALUE_DIM=value_dim,
        PADDED_DIM=padded[0],
        PADDED_VALUE_DIM=padded[1],
        ROW_PARTS=of_tokens,
        ROW_WEIGHT_PARTS=of_weights if want_grad else of_tokens,
        COLUMN_PARTS=of_tokens,
        WEIGHT_PARTS=of_weights,
        PARTS=parts,
        K_BITS=gaussian._k_bits(padded[1]),
        WANT_OUT=want_out,
        WANT_GRAD=want_grad,
        ROWS=config['ROWS'],
        COLS=config['COLS'],
    )
    types = dict.fromkeys(constants, 'constexpr')
    types.update(rows=f'*{tokens}', u=f'*{weights if want_grad else tokens}')
    types.update(dict.fromkeys(('cols', 'w'), '*fp16'), largest=f'*{weights}')
    types.update(dict.fromkeys(('half_squares', 'out', 'grad'), '*fp32'))
    kernel = gaussian._sweep_kernel
    signature = {name: types.get(name, 'i32') for name in kernel.arg_names}
    aligned = {
        (i,): [['tt.divisibility', 16]]
        for i, (name, kind) in enumerate(signature.items())
        if kind != 'constexpr' and name not in _NOT_SPECIALIZED
    }
    return _compile(kernel, signature, constants, aligned, capability, options), config


def compile_parabola(capability):
    """Compiles the inverse's parabola; arguments as for :func:`compile_sweep`."""
    return _compile_of_halves(
        polynomial._parabola_kernel,
        capability,
        ('height',),
        **polynomial._PARABOLA_BLOCK,
    )


def compile_columns(capability, parts, cols):
    """Compiles the product of the inverse's matrices with so many padded columns."""
    return _compile_of_halves(
        polynomial._columns_kernel,
        capability,
        ('of_product', 'of_b', 'of_previous', 'of_x'),
        PARTS=parts,
        MORE=True,
        **polynomial._column_config(cols),
    )


def _compile_of_halves(kernel, capability, numbers, **config):
    options = {x: config.pop(x) for x in ('num_warps', 'num_stages')}
    types = dict.fromkeys(config, 'constexpr')
    types.update(dict.fromkeys(numbers, 'fp32'), size='i32', matrices='i32')
    signature = {name: types.get(name, '*fp16') for name in kernel.arg_names}
    aligned = {
        (i,): [['tt.divisibility', 16]]
        for i, (name, kind) in enumerate(signature.items())
        if kind not in ('constexpr', 'fp32') and name not in _NOT_SPECIALIZED
    }
    return _compile(kernel, signature, config, aligned, capability, options)


def _compile(kernel, signature, constants, aligned, capability, options):
    return triton_compile(
        ASTSource(kernel, signature, constants, aligned),
        target=GPUTarget('cuda', capability, 32),
        options=options,
    )


def resources(compiled):
    """Registers and bytes of stack of a thread, bytes of shared memory of a block.

    Args:
        compiled: What :func:`compile_sweep` returned first.

    Returns:
        dict[str, int]: 'registers', 'stack' and 'shared'.
    """
    usage = _binary_tool('cuobjdump', '-res-usage', compiled.asm['cubin'])
    registers, stack = map(int, re.search(r'REG:(\d+) STACK:(\d+)', usage).groups())
    return dict(registers=registers, stack=stack, shared=compiled.metadata.shared)


def loop(compiled):
    """Instructions of the loop over columns.

    Args:
        compiled: What :func:`compile_sweep` returned first.

    Returns:
        list[str]: SASS, those for products and copies included.
    """
    lines, labels, loops = [], {}, []
    for line in _binary_tool('nvdisasm', '-c', compiled.asm['cubin']).splitlines():
        if label := re.match(r'(\.L\S+):', line):
            labels[label[1]] = len(lines)
        elif found := re.match(r'\s+/\*[0-9a-f]+\*/\s+(.*?);', line):
            lines.append(found[1])
            target = re.search(r'BRA.*`\((\.L\S+)\)', found[1])
            if target and target[1] in labels:
                loops.append(lines[labels[target[1]] :])
    return max((x for x in loops if any('MUFU.EX2' in y for y in x)), key=len)


def count(compiled, config):
    """What the loop over columns costs.

    Args:
        compiled, config: What :func:`compile_sweep` returned.

    Returns:
        dict: 'instructions', issued for each entry of the kernel matrix that a thread
        computes; 'spills', loads and stores of spilled registers in the loop.
    """
    body = loop(compiled)
    entries = config['ROWS'] * config['COLS'] / (32 * config['num_warps'])
    spills = sum(bool(re.search(r'\b(LDL|STL)\b', line)) for line in body)
    return dict(instructions=round(len(body) / entries, 1), spills=spills)


def _binary_tool(name, option, cubin):
    with tempfile.NamedTemporaryFile(suffix='.cubin') as file:
        file.write(cubin)
        file.flush()
        return subprocess.run(
            [_BINARIES / name, option, file.name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout


def measure(capabilities):
    """All kernels of these capabilities, one dict each."""
    rows = []
    for capability, operands, dims, wanted in product(
        capabilities, OPERANDS, DIMS, WANTED
    ):
        padded = sum(map(gaussian._padded, dims))
        if wanted == 'both' and padded > gaussian._BOTH_UP_TO:
            continue  # in two sweeps
        compiled, config = compile_sweep(capability, operands, *dims, wanted)
        row = dict(capability=capability, operands=operands, wanted=wanted)
        row.update(dim=dims[0], value_dim=dims[1], **config, **resources(compiled))
        row.update(count(compiled, config))
        rows.append(row)
        print(*row.values(), file=sys.stderr)
    return rows


def measure_inverse(capabilities):
    """The kernels of the inverse, one dict each."""
    rows = []
    for capability in capabilities:
        kernels = {('parabola', 2): compile_parabola(capability)}
        for parts, cols in product((1, 2), (32, 64, 128)):
            kernels[f'{cols} columns', parts] = compile_columns(capability, parts, cols)
        for (name, parts), compiled in kernels.items():
            row = dict(capability=capability, kernel=name, halves=parts)
            row.update(resources(compiled))
            rows.append(row)
            print(*row.values(), file=sys.stderr)
    return rows


def render(rows, inverse):
    """The page, tables of sweeps and of the inverse's kernels."""
    lines = [
        '# What the kernels compile to',
        '',
        '**Compiled, not run**: by `benchmarks/kernels/compiled.py`, Triton '
        f'{triton.__version__}, torch {torch.__version__}, with the attributes of '
        'aligned arguments that a launch gives. `dims`: head dim / channels of '
        'weights (the gradients of both products with P at once have twice the head '
        'dim). `wanted`: the product, the gradient of the rows, or both, which is two '
        'sweeps where that is not in the table. Registers '
        'and bytes of stack are of a thread, shared memory of a block. Instructions '
        'are those of the loop over columns, for each entry of the kernel matrix '
        'that a thread computes; spills are loads and stores of the stack in that '
        'loop.',
        '',
    ]
    for capability in CAPABILITIES:
        table = [x for x in rows if x['capability'] == capability]
        if not table:
            continue
        lines += [
            f'## sm{capability}',
            '',
            f'{SHARED[capability]} KiB of shared memory for a block.',
            '',
            '| operands | dims | wanted | rows × columns | warps | registers | stack, '
            'B | shared, KiB | instructions | spills |',
            '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
        ]
        lines += [
            f'| {x["operands"]} | {x["dim"]}/{x["value_dim"]} | {x["wanted"]} | '
            f'{x["ROWS"]} × {x["COLS"]} | {x["num_warps"]} | {x["registers"]} | '
            f'{x["stack"]} | {x["shared"] / 1024:.1f} | {x["instructions"]} | '
            f'{x["spills"]} |'
            for x in table
        ]
        lines.append('')
    lines += [
        '## The inverse',
        '',
        'Kernels of the polynomial: a parabola of matrices, and products of matrices '
        'with columns, where `halves` is how many of a matrix they multiply.',
        '',
        '| capability | kernel | halves | registers | stack, B | shared, KiB |',
        '| --- | --- | --- | --- | --- | --- |',
    ]
    lines += [
        f'| sm{x["capability"]} | {x["kernel"]} | {x["halves"]} | {x["registers"]} | '
        f'{x["stack"]} | {x["shared"] / 1024:.1f} |'
        for x in inverse
    ]
    return '\n'.join([*lines, ''])


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        '--capability',
        type=int,
        nargs='+',
        choices=CAPABILITIES,
        default=CAPABILITIES,
        help='compute capabilities times ten (default: all)',
    )
    parser.add_argument(
        '--out',
        type=Path,
        help='folder for kernels_compiled.json and kernels_compiled.md',
    )
    add_overwrite(parser)
    args = parser.parse_args(argv)
    if args.out:
        names = 'kernels_compiled.json', 'kernels_compiled.md'
        protect(args, *(args.out / name for name in names))
    rows, inverse = measure(args.capability), measure_inverse(args.capability)
    page = render(rows, inverse)
    print(page)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        record = dict(triton=triton.__version__, kernels=rows, inverse=inverse)
        (args.out / 'kernels_compiled.json').write_text(json.dumps(record, indent=1))
        (args.out / 'kernels_compiled.md').write_text(page)


if __name__ == '__main__':
    main()
