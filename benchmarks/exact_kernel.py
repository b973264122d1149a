# ruff: noqa
"""What exact parts of the kernel change: small models on Imagenette from a GPU's memory.

A CUDA graph is a training step, and eight trainings run at a time. TRAIN and VAL are NumPy archives of
Imagenette's photos as WebP, `data` (bytes of all), `sizes` and `labels`: 144 and 224 pixels, the middle
of each photo. Results are docs/claims/exact.json.

    python benchmarks/exact_kernel.py --train TRAIN --val VAL --out FILE --seconds 380
"""

import argparse
import io
import json
import logging
import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import affine_grid, cross_entropy, grid_sample

logging.disable(logging.INFO)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mmlinattn.functional import gaussian_kernel
from mmlinattn.models import SoftmaxFreeAttention, VisionTransformer
from mmlinattn.models.attentions.landmarks import SAMPLERS
from mmlinattn.registry import MODELS, build_model

ap = argparse.ArgumentParser()
ap.add_argument('--train')
ap.add_argument('--val')
ap.add_argument('--out')
ap.add_argument('--seconds', type=float)
ap.add_argument('--device', default='cuda')
ap.add_argument('--plan', default='bag')
ap.add_argument('--steps', type=int)
ap.add_argument('--photos', type=int)
ap.add_argument('--width', type=int, default=8)
args = ap.parse_args()
START = time.time()
DEV = args.device
GRAPH = DEV == 'cuda'

MEAN = torch.tensor((123.675, 116.28, 103.53))
STD = torch.tensor((58.395, 57.12, 57.375))


def unpack(path, sides):
    z = np.load(path)
    ends = z['sizes'].cumsum()
    data = z['data'].tobytes()
    n = args.photos or len(ends)

    def one(i):
        im = Image.open(io.BytesIO(data[ends[i] - z_sizes[i] : ends[i]])).convert('RGB')
        return [
            np.asarray(im if im.width == s else im.resize((s, s), Image.BICUBIC))
            for s in sides
        ]

    z_sizes = z['sizes']
    with ThreadPoolExecutor(16) as pool:
        images = list(pool.map(one, range(n)))
    out = {
        s: torch.from_numpy(np.stack([im[k] for im in images])).to(DEV)
        for k, s in enumerate(sides)
    }
    return out, torch.from_numpy(z['labels'][:n]).to(DEV)


class NoAttention:
    def attend(self, q, k, v, hw_shape):
        return torch.zeros_like(v)


@MODELS.register_module()
class NoSoftmaxFreeAttention(NoAttention, SoftmaxFreeAttention):
    pass


@MODELS.register_module()
class RankOneAttention(SoftmaxFreeAttention):
    def attend(self, q, k, v, hw_shape):
        m = self.sampler(self.split_heads(q), hw_shape).size(2)
        return (v.size(1) / m) * v.mean(1, keepdim=True).expand_as(v)


@MODELS.register_module()
class ExactRows(SoftmaxFreeAttention):
    def attend(self, q, k, v, hw_shape):
        q = self.split_heads(q) / self.head_dims**0.25
        v = self.split_heads(v)
        kernel = gaussian_kernel(q)
        return self.merge_heads(kernel @ v / kernel.sum(-1, keepdim=True))


@MODELS.register_module()
class SmallConv(SoftmaxFreeAttention):
    """Convolved landmarks that start as small as tokens."""

    def init_weights(self):
        super().init_weights()
        nn.init.constant_(self.sampler.norm.weight, 0.1)


@MODELS.register_module()
class PatchBag(VisionTransformer):
    def __init__(self, **o):
        super().__init__(**o)
        self.pos_embed = None


class WeightedSampler(SAMPLERS['pool']):
    """Convex combinations of each cell's tokens, by a learned softmax."""

    def __init__(self, head_dims, ratio, fixed=None):
        super().__init__(head_dims, ratio, fixed)
        self.score = nn.Linear(head_dims, 1, bias=False)

    def forward(self, q, hw_shape):
        logits = q @ self.score.weight.mT
        weights = (logits - logits.detach().amax(-2, keepdim=True)).exp() + 0.01
        sums = super().forward(torch.cat((weights * q, weights), -1), hw_shape)
        return sums[..., :-1] / sums[..., -1:]


SAMPLERS['weighted'] = WeightedSampler

FREE = dict(sampling_ratio=2, sampler='pool', kernel_size=0, attn_norm=True)


def flat(type='SoftmaxFreeAttention', **o):
    if type != 'SoftmaxAttention':
        o = dict(FREE, **o)
    return dict(
        type='PatchBag',
        arch=dict(embed_dims=64, num_layers=6, num_heads=2),
        img_size=112,
        patch_size=8,
        block=dict(ffn_ratio=1),
        attention=dict(type=type, **o),
        with_cls_token=False,
        out_type='featmap',
    )


ROWS = dict(
    attn_norm='rows',
    num_landmarks=49,
    solver='cholesky',
    ridge=1e-3,
    relative_ridge=True,
)


def lin(w, s, **o):
    return flat(**dict(ROWS, sampler=s, exact_window=w, **o))


BAG = {
    'softmax': flat('SoftmaxAttention'),
    'none': flat('NoSoftmaxFreeAttention'),
    'rows conv': lin(0, 'conv'),
    'exact gaussian': flat('ExactRows'),
    'diag pool': lin(1, 'pool'),
    'diag weighted': lin(1, 'weighted'),
    'diag conv': lin(1, 'conv'),
    'diag smallconv': lin(1, 'conv', type='SmallConv'),
    'rows smallconv': lin(0, 'conv', type='SmallConv'),
    'win4 weighted': lin(4, 'weighted'),
    'win4 pool': lin(4, 'pool'),
    'win4 smallconv': lin(4, 'conv', type='SmallConv'),
    'win4 conv': lin(4, 'conv'),
    'rows pool': lin(0, 'pool'),
    'rows weighted': lin(0, 'weighted'),
    'rank one': flat('RankOneAttention'),
    'printed conv': flat(sampler='conv'),
    'rows conv 16': lin(0, 'conv', **{}) | {},
    'diag weighted 16': lin(1, 'weighted'),
    'diag smallconv 16': lin(1, 'conv', type='SmallConv'),
}
for k in list(BAG):
    if k.endswith(' 16'):
        BAG[k] = json.loads(json.dumps(BAG[k]))
        BAG[k]['attention']['num_landmarks'] = 16
SHUFFLED = {
    k + ', shuffled': BAG[k]
    for k in ('softmax', 'rows conv', 'diag smallconv', 'win4 smallconv')
}


def micro(**o):
    return dict(type='LinearSOFTPlusPlus', arch='micro', img_size=112, **o)


def smallnorm(c):
    return dict(c, small=True)


PYR = {
    'rows conv': micro(),
    'diag conv': micro(exact_window=1),
    'diag smallconv': smallnorm(micro(exact_window=1)),
    'diag pool': micro(exact_window=1, sampler='pool'),
    'diag weighted': micro(exact_window=1, sampler='weighted'),
    'win7 weighted': micro(exact_window=7, sampler='weighted'),
    'win7 pool': micro(exact_window=7, sampler='pool'),
    'win7 smallconv': smallnorm(micro(exact_window=7)),
    'rows pool': micro(sampler='pool'),
    'printed': dict(
        type='SOFTPlusPlus',
        arch=dict(
            embed_dims=[32, 64, 96, 160], depths=[1, 2, 4, 2], num_heads=[1, 2, 3, 5]
        ),
        img_size=112,
    ),
}


class Classifier(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        cfg = dict(cfg)
        small = cfg.pop('small', False)
        self.backbone = build_model(cfg)
        self.backbone.init_weights()
        if small:
            for m in self.backbone.modules():
                if hasattr(m, 'sampler') and hasattr(m.sampler, 'norm'):
                    nn.init.constant_(m.sampler.norm.weight, 0.1)
        self.head = nn.Linear(self.backbone.feature_channels[-1], 10)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, images):
        out = self.backbone((images - MEANT) / STDT)[-1]
        return self.head(out.mean((2, 3)) if out.dim() == 4 else out)


def factor(step, steps):
    first = max(round(0.1 * steps), 1)
    return (
        (step + 1) / first
        if step < first
        else 0.5 * (1 + math.cos(math.pi * (step - first) / max(steps - first, 1)))
    )


def crops(steps, batch, seed, area=(0.35, 1.0)):
    g = torch.Generator().manual_seed(seed + 77)
    num = steps * batch
    u = lambda a, b: a + (b - a) * torch.rand(num, generator=g)
    stretch = u(math.log(3 / 4), math.log(4 / 3)).exp().sqrt()
    share = u(*area).sqrt()
    theta = torch.zeros(num, 2, 3)
    for axis, extent in enumerate((share * stretch, share / stretch)):
        extent = extent.clamp(max=1)
        theta[:, axis, axis] = extent
        theta[:, axis, 2] = u(-1, 1) * (1 - extent)
    theta[:, 0, 0] *= u(-1, 1).sign()
    return theta.view(steps, batch, 2, 3).to(DEV)


def shuffle_patches(x, generator=None, p=8):
    b, c, h, w = x.shape
    y = x.view(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    order = torch.rand(b, y.size(1), device=x.device, generator=generator).argsort(1)
    y = y.gather(1, order[:, :, None, None, None].expand_as(y))
    return y.unflatten(1, (h // p, w // p)).permute(0, 3, 1, 4, 2, 5).reshape(x.shape)


class Run:
    def __init__(self, name, cfg, lr, seed, tune, epochs=4, batch=32):
        self.name, self.lr, self.seed, self.tune = name, lr, seed, tune
        self.shuffled = name.endswith('shuffled')
        torch.manual_seed(seed)
        self.model = Classifier(cfg).to(DEV).train()
        index = INDEX['tune' if tune else 'train']
        per = len(index) // batch
        self.steps = args.steps or epochs * per
        order = []
        for e in range(-(-self.steps // per)):
            g = torch.Generator().manual_seed(1000 * seed + e)
            order.append(
                index[torch.randperm(len(index), generator=g)[: per * batch]].view(
                    per, batch
                )
            )
        self.order = torch.cat(order)[: self.steps].to(DEV)
        self.theta = crops(self.steps, batch, seed)
        self.rates = torch.tensor(
            [lr * factor(s, self.steps) for s in range(self.steps)], device=DEV
        )
        decay = [p for p in self.model.parameters() if p.dim() >= 2]
        plain = [p for p in self.model.parameters() if p.dim() < 2]
        self.rate = torch.zeros((), device=DEV)
        opt = dict(capturable=True, fused=True) if GRAPH else {}
        self.opt = torch.optim.AdamW(
            [dict(params=decay, weight_decay=0.05), dict(params=plain)],
            weight_decay=0.0,
            lr=self.rate if GRAPH else lr,
            **opt,
        )
        self.at = torch.zeros((), dtype=torch.long, device=DEV)
        self.loss = torch.zeros((), device=DEV)
        self.stream = torch.cuda.Stream() if GRAPH else None
        self.graph = None

    def step(self):
        i = self.at.view(1)
        idx = self.order.index_select(0, i)[0]
        theta = self.theta.index_select(0, i)[0]
        self.rate.copy_(self.rates.index_select(0, i)[0])
        x = TRAIN.index_select(0, idx).permute(0, 3, 1, 2).float()
        x = grid_sample(
            x,
            affine_grid(theta, (len(idx), 3, 112, 112), align_corners=False),
            padding_mode='border',
            align_corners=False,
        )
        if self.shuffled:
            x = shuffle_patches(x)
        loss = cross_entropy(
            self.model(x), LABELS.index_select(0, idx), label_smoothing=0.1
        )
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=GRAPH or None)
        self.opt.step()
        self.opt.zero_grad(set_to_none=False)
        self.loss.copy_(loss.detach())
        self.at += 1

    def prepare(self):
        if not GRAPH:
            return
        keep = {k: v.clone() for k, v in self.model.state_dict().items()}
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self.step()
        self.stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            self.step()
        self.graph = graph
        # as at the start
        with torch.no_grad():
            for k, v in self.model.state_dict().items():
                v.copy_(keep[k])
            for s in self.opt.state.values():
                for t in s.values():
                    t.zero_()
            for p in self.model.parameters():
                if p.grad is not None:
                    p.grad.zero_()
            self.at.zero_()
        torch.cuda.synchronize()

    def go(self):
        if self.graph is None:
            self.step()
        else:
            with torch.cuda.stream(self.stream):
                self.graph.replay()

    @torch.no_grad()
    def score(self, split, side, pad=0):
        self.model.eval()
        images, labels = split
        right = 0
        g = torch.Generator(DEV).manual_seed(0)
        for i in range(0, len(labels), 256):
            x = images[side][i : i + 256].permute(0, 3, 1, 2).float()
            if self.shuffled:
                x = shuffle_patches(x, g)
            if pad:  # zeros after normalization, at the right
                x = torch.cat((x, MEANT.expand(len(x), 3, x.size(2), pad)), 3)
                out = self.model.backbone((x - MEANT) / STDT)[-1]
                # the valid region alone
                cols = (
                    -(-side // 32)
                    if out.size(3) * 32 >= side + pad - 31
                    else -(-side // 8)
                )
                out = self.model.head(out[..., :cols].mean((2, 3)))
            else:
                out = self.model(x)
            right += (out.argmax(1) == labels[i : i + 256]).sum().item()
        return right / len(labels)


RESULTS = []


def left():
    return args.seconds - (time.time() - START)


def save():
    Path(args.out).write_text(json.dumps(RESULTS, indent=0))


def run_group(runs, look):
    began = time.time()
    ok = []
    for r in runs:
        try:
            r.prepare()
            ok.append(r)
        except Exception as e:
            print('capture failed', r.name, repr(e)[:300], flush=True)
            r.graph = None
            torch.cuda.synchronize() if GRAPH else None
            RESULTS.append(
                dict(
                    name=r.name, lr=r.lr, seed=r.seed, tune=r.tune, error=repr(e)[:200]
                )
            )
    prepared = time.time()
    for s in range(max((r.steps for r in ok), default=0)):
        for r in ok:
            if s < r.steps:
                r.go()
        if s % 50 == 49 and GRAPH:
            torch.cuda.synchronize()
    if GRAPH:
        torch.cuda.synchronize()
    trained = time.time()
    for r in ok:
        res = dict(name=r.name, lr=r.lr, seed=r.seed, tune=r.tune, loss=r.loss.item())
        try:
            res['scores'] = look(r)
        except Exception as e:
            res['error'] = repr(e)[:200]
        RESULTS.append(res)
    save()
    print(
        f'{time.time() - START:.0f}s group of {len(runs)}: prepare {prepared - began:.1f} train {trained - prepared:.1f} look {time.time() - trained:.1f}',
        [
            (
                r['name'],
                r['lr'],
                r['seed'],
                {k: round(v, 3) for k, v in r.get('scores', {}).items()},
            )
            for r in RESULTS[-len(ok) :]
        ],
        flush=True,
    )


def diagonal(r):
    """Median of the diagonal of the Nystroem kernel, by layer."""
    return None


def look_bag(r):
    if r.tune:
        return {'check': r.score(CHECK, 112)}
    return {str(s): r.score(VAL, s) for s in (112, 168, 256)}


def look_pyr(r):
    if r.tune:
        return {'check': r.score(CHECK, 112)}
    return {
        **{str(s): r.score(VAL, s) for s in (112, 168, 256)},
        '112 half padded': r.score(VAL, 112, 112),
    }


def go(models, rates, seeds, look, label):
    todo = [Run_(label, n, c, lr, 0, True) for n, c in models.items() for lr in rates]
    for i in range(0, len(todo), args.width):
        if left() < 25:
            return
        run_group([f() for f in todo[i : i + args.width]], look)
    best = {}
    for n in models:
        tuned = [
            r
            for r in RESULTS
            if r['name'] == f'{label} {n}' and r['tune'] and 'scores' in r
        ]
        if tuned:
            best[n] = max(tuned, key=lambda r: r['scores']['check'])['lr']
    todo = [Run_(label, n, models[n], best[n], s, False) for s in seeds for n in best]
    for i in range(0, len(todo), args.width):
        if left() < 25:
            return
        run_group([f() for f in todo[i : i + args.width]], look)


def Run_(label, n, c, lr, s, tune):
    return lambda: Run(f'{label} {n}', c, lr, s, tune)


(train, LABELS) = unpack(args.train, (144,))
TRAIN = train[144]
val, vlabels = unpack(args.val, (112, 168, 256))
VAL = (val, vlabels)
MEANT = MEAN.to(DEV)[:, None, None]
STDT = STD.to(DEV)[:, None, None]
n = len(LABELS)
every = torch.arange(n) % 10 == 0
INDEX = dict(train=torch.arange(n), tune=torch.arange(n)[~every])
ci = torch.arange(n)[every].to(DEV)
middle = (
    torch.nn.functional.interpolate(
        TRAIN[ci].permute(0, 3, 1, 2).float(),
        size=(112, 112),
        mode='bicubic',
        antialias=True,
    )
    .clamp(0, 255)
    .permute(0, 2, 3, 1)
)
CHECK = ({112: middle}, LABELS[ci])
print(
    f'data {time.time() - START:.0f}s',
    TRAIN.shape,
    {k: v.shape for k, v in val.items()},
    flush=True,
)
RATES = (1e-3, 2e-3, 4e-3)
if args.plan == 'smoke':
    for k, c in {**BAG, **SHUFFLED}.items():
        run_group([Run('bag ' + k, c, 1e-3, 0, False)], look_bag)
    for k, c in PYR.items():
        run_group([Run('pyr ' + k, c, 1e-3, 0, False)], look_pyr)
else:
    first = [
        'softmax',
        'none',
        'rows conv',
        'exact gaussian',
        'diag pool',
        'diag weighted',
        'diag smallconv',
        'win4 smallconv',
        'win4 weighted',
    ]
    go({k: BAG[k] for k in first}, (5e-4, *RATES), (0, 1, 2), look_bag, 'bag')
    go(
        {
            k: PYR[k]
            for k in ('rows conv', 'diag smallconv', 'diag weighted', 'win7 smallconv')
        },
        (1e-3, 2e-3),
        (0, 1, 2),
        look_pyr,
        'pyr',
    )
    go(
        {k: v for k, v in BAG.items() if k not in first},
        (5e-4, *RATES),
        (0, 1, 2),
        look_bag,
        'bag',
    )
    go(
        {
            k: v
            for k, v in PYR.items()
            if k
            not in ('rows conv', 'diag smallconv', 'diag weighted', 'win7 smallconv')
        },
        (1e-3, 2e-3),
        (0, 1, 2),
        look_pyr,
        'pyr',
    )
    go(SHUFFLED, RATES, (0, 1, 2), look_bag, 'bag')
print(f'done {time.time() - START:.0f}s')
