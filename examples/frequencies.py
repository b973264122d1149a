"""What attention and FFNs leave of high frequencies, in any model of ours
(*Anti-Oversmoothing in Deep Vision Transformers*, arXiv 2203.05962).

    python examples/frequencies.py configs/antioversmoothing/deit-s12_in1k.py \
        --checkpoint deit_small.pth --image photo.jpg --out frequencies

Head h leaves ||HC[A X]|| <= g ||HC[X]|| + l ||DC[X]|| of tokens X without their mean,
g = ||(I - L) A (I - L)||, L = 1 1^T / N, l = ||HC[A 1]|| / sqrt N. Heads (Proposition
4), their shortcut (5) and FFNs (6) follow by the norms of weights. OUT.json and OUT.png
have what is left, with bounds where an output is no more than the projection of heads.
OUT_spectra.png has F A F^-1 of first heads: a row is what leaves with a frequency.
"""

import argparse
import json
from functools import partial
from math import prod
from pathlib import Path

import mmcv
import numpy as np
import torch
from matplotlib.figure import Figure
from torch.fft import fft, fftshift, ifft
from torch.linalg import matrix_norm

from mmlinattn.analysis import attention_rows, attentions_of, hc_proportion, watch
from mmlinattn.registry import MODELS
from mmlinattn.utils import load_config
from mmlinattn.weights import load_pretrained

TOKENS = 1024  # the largest matrices
GELU_SLOPE = 1.13
MEAN, STD = np.array([[123.675, 116.28, 103.53], [58.395, 57.12, 57.375]])


def high(x):
    """HC[X], tokens (..., N, C) without their mean."""
    return x - x.mean(-2, keepdim=True)


def heads_left(call, attn, x, out):
    """||HC[MSA(X)]|| / ||HC[X]|| with and without a shortcut, and their bounds; nothing
    where the output is not that of the heads."""
    projection = getattr(call.module, 'proj', None)
    values = call.v[0].split(list(call.module.dims_of_heads), -1)
    if attn.size(-2) != len(x) or not isinstance(projection, torch.nn.Linear):
        return {}
    product = projection(torch.cat([a @ v for a, v in zip(attn, values)], -1))
    if not torch.allclose(product, out, rtol=1e-3, atol=1e-4):
        return {}
    rate = matrix_norm(high(high(attn).mT), 2)
    leak = high(attn.sum(-1, keepdim=True)).norm(dim=(-2, -1)) / attn.size(-1) ** 0.5
    weights = projection.weight.split(list(call.module.dims_of_heads), -1)
    enters, bound = high(x).norm(), 0
    for w, g, lam, v in zip(weights, rate, leak, values):
        part = g * high(v).norm() + lam * (v - high(v)).norm()
        bound += matrix_norm(w, 2) * part / enters
    names = 'heads', 'heads, bound', 'heads + shortcut', 'heads + shortcut, bound'
    left = high(out).norm() / enters, bound, high(x + out).norm() / enters, 1 + bound
    return dict(zip(names, left))


def measure(backbone, image):
    """Numbers and a spectrum of each attention with at most TOKENS queries."""
    rows, spectra, seen, entered = {}, {}, {}, {}

    def look(call):
        if call.module.linear_in_values and call.q.size(1) == call.k.size(1) <= TOKENS:
            seen[call.name] = call

    def after_attention(name, _module, args, out):
        if (call := seen.pop(name, None)) is None:
            return
        tensors = call.q, call.k, call.v, call.hw_shape
        attn = attention_rows(call.module, *tensors, range(call.q.size(1)))[0]
        spectrum = fft(ifft(attn, norm='ortho'), dim=-2, norm='ortho').abs()
        rows[name] = dict(hc_proportion=hc_proportion(args[0]).mean())
        for side, dim in (('rows', -1), ('columns', -2)):
            gain = spectrum.norm(dim=dim)
            rows[name][f'gain of {side}'] = (gain[:, 1:].amax(-1) / gain[:, 0]).mean()
        rows[name].update(heads_left(call, attn, args[0][0], out[0]))
        spectra[name] = spectrum[0]

    def before_ffn(name, _layer, args):
        entered[name] = high(args[0][0]).norm()

    def after_ffn(name, layers, _layer, _args, out):
        if name in rows:
            rows[name]['FFN'] = high(out[0]).norm() / entered[name]
            norms = (matrix_norm(x.weight, 2) for x in (layers[0][0], layers[1]))
            rows[name]['FFN, bound'] = GELU_SLOPE * prod(norms)

    for name, module in attentions_of(backbone).items():
        module.register_forward_hook(partial(after_attention, name))
        block = backbone.get_submodule(name.rpartition('.')[0])
        if getattr(block, 'ffn_conv', False) is None:
            # a block calls the layers of its FFN, not the FFN
            first, second, *_ = layers = block.ffn.layers
            first.register_forward_pre_hook(partial(before_ffn, name))
            second.register_forward_hook(partial(after_ffn, name, layers))
    with torch.no_grad(), watch(backbone, look):
        backbone(image)
    return rows, spectra


def draw(rows, spectra, out):
    figure = Figure(figsize=(9, 4), layout='constrained')
    axes = figure.subplots()
    for key in dict.fromkeys(key for row in rows.values() for key in row):
        style = ':' if 'bound' in key else '.-'
        numbers = [float(row.get(key, 'nan')) for row in rows.values()]
        axes.plot(numbers, style, label=key)
    axes.set(xlabel='attention', yscale='log')
    figure.legend(loc='outside right')
    figure.savefig(f'{out}.png')
    shape = -(-len(spectra) // 6), 6
    figure = Figure(figsize=(12, 2 * shape[0]), layout='constrained')
    for i, (name, spectrum) in enumerate(spectra.items()):
        axes = figure.add_subplot(*shape, i + 1)
        axes.imshow(fftshift(spectrum).clamp(min=1e-6).log10())
        axes.set_title(name, fontsize=7)
        axes.set_axis_off()
    figure.savefig(f'{out}_spectra.png')


def main(*words):
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('config')
    for name, default in (('checkpoint', ''), ('image', ''), ('out', 'frequencies')):
        parser.add_argument(f'--{name}', default=default)
    parser.add_argument('--size', type=int, default=224, help='side of the image')
    args = parser.parse_args(words or None)
    backbone = MODELS.build(load_config(args.config).model.backbone).eval()
    if args.checkpoint:
        load_pretrained(backbone, args.checkpoint)
    image = torch.randn(1, 3, args.size, args.size)
    if args.image:
        pixels = mmcv.imresize(mmcv.imread(args.image), (args.size, args.size))
        pixels = mmcv.imnormalize(pixels.astype('float32'), MEAN, STD, to_rgb=True)
        image = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    rows, spectra = measure(backbone, image)
    text = json.dumps(rows, indent=1, default=float)
    Path(f'{args.out}.json').write_text(text, 'utf-8')
    draw(rows, spectra, args.out)
    print(f'{len(rows)} attentions in {args.out}.json')


if __name__ == '__main__':
    main()
