"""What is measured of trained classifiers besides their score: of the same models with
larger photos or another inverse; maps that explain them; ViTs' tokens by block."""

import contextlib
import io
from functools import partial
from math import isqrt
from types import MethodType

import torch
from side_by_side.report import write_json
from torch.nn.functional import avg_pool2d

from mmlinattn import analysis
from mmlinattn.models import SoftmaxFreeAttention
from mmlinattn.models.attentions.landmarks import PoolingSampler

from .models import NO_INVERSE, SIDE, RankOneAttention
from .tasks import batches, normalized

SIZES = (SIDE, 256)
# At larger sizes: those that the claim is about, and the controls.
SIZED = ('SOFT', 'SOFT++', 'SOFT bare', 'SOFT++ bare')
SIZED += ('SOFT++ bare no attention', 'SOFT++ bare rank one')
EXPLAINED = ('Swin softmax', 'Swin ELFATT', 'Swin no attention')
PHOTOS = 1000  # whose scores are taken
OF_TOKENS, OF_MAPS = 500, 32  # of ViTs' depths; of branches and of maps
RIDGES = (0.001, 0.1, NO_INVERSE)
TRAINED, LANDMARKS = 49, (4, 16, 196)  # landmarks at SIDE, and in place of them
HIGH, ALIKE = 'high frequencies', 'similarity'
MEASURES = {
    HIGH: partial(analysis.hc_proportion, over_dc=True),
    ALIKE: analysis.token_similarity,
}
# What a ViT's blocks have, shortcuts and FFN: in the paper's Figure 1, it is left out.
WAYS = {
    '': (1, 1),
    ', no FFN': (1, 0),
    ', no shortcuts': (0, 1),
    ', attention alone': (0, 0),
}


def looks_file(run, work_dir):
    return run.folder(work_dir) / 'looks.json'


def lacks_looks(run, work_dir):
    """Whether more than the score of a run is to be measured, and is not yet."""
    looked_at = run.data == 'imagenette' and run.name in SIZED + EXPLAINED
    looked_at |= run.name.startswith('ViT')
    looked_at &= run.split == 'train'
    return looked_at and not looks_file(run, work_dir).is_file()


def look(run, model, task, work_dir):
    """Keeps scores of the first photos beside a run; its model's inverse is changed."""
    found = depths(model, task, run.recipe['side']) if run.data == 'cifar10' else {}
    attentions = analysis.attentions_of(model).values()
    soft = [x for x in attentions if isinstance(x, SoftmaxFreeAttention)]

    def score(name, side=SIDE):
        found[name] = task.score(model, 'val', side, limit=PHOTOS)

    for side in SIZES if run.data == 'imagenette' else ():
        score(f'at {side}', side)
        found[f'at {side}'].update(branches=branches(model, task, side))
    grown = [x for x in soft if not x.attn_norm]
    # as much as there are more tokens; 0 is the control
    growth = dict(scaled=(SIDE / SIZES[-1]) ** 2, off=0.0) if grown else {}
    for name, factor in growth.items():
        with scaled(grown, factor):
            score(f'at {SIZES[-1]}, {name}', SIZES[-1])
    pools = [x for x in soft if isinstance(x.sampler, PoolingSampler)]
    for num in LANDMARKS if pools else ():
        for x in pools:
            x.sampler.fixed_side = isqrt(num)
        score(f'tested with {num} landmarks')
        with scaled(pools, num / TRAINED):
            score(f'tested with {num} landmarks, scaled')
    for x in pools:
        x.sampler.fixed_side = None
    for ridge in RIDGES if soft else ():
        for x in soft:
            x.solver, x.ridge = 'cholesky', ridge
        score(f'tested with ridge {ridge:g}')
    for x in soft:
        x.attend = MethodType(RankOneAttention.attend, x)
    if soft:
        score('tested as rank one')
    if run.name in EXPLAINED:
        found['maps'] = explained(model, task, run.recipe['side'])
    write_json(looks_file(run, work_dir), found)


@contextlib.contextmanager
def scaled(attentions, factor):
    """Multiplies what attentions return, but for their local filters."""
    for x in attentions:
        # beside the method, which is there again when this one is gone
        x.attend = partial(lambda attend, *args: factor * attend(*args), x.attend)
    yield
    for x in attentions:
        del x.attend


@torch.no_grad()
def depths(model, task, side):
    """Measures of a ViT's tokens after every block, the class token being one, with and
    without :data:`WAYS`; scores are those of the last block."""
    blocks, given = [*analysis.blocks_of(model).values()], []
    hook = blocks[0].register_forward_pre_hook(lambda _, args: given.append(args))
    pixels, _ = task.arrays('val', side)
    with hook:
        model(next(batches(pixels, OF_TOKENS, model)))
    found = {}
    for way, (shortcut, ffn) in WAYS.items():
        (tokens, hw_shape), steps = given[0], []
        for block in blocks:
            added = block.attention(block.norm1(tokens), hw_shape)
            tokens = shortcut * tokens + added
            if ffn:
                added = block.feed_forward(block.norm2(tokens))
                tokens = shortcut * tokens + added
            steps.append(tokens)
        for name, measure in MEASURES.items():
            curve = [measure(x).mean().item() for x in steps]
            found[name + way] = dict(score=curve[-1], curve=curve)
    return found


@torch.no_grad()
def branches(model, task, side):
    """Of each block, the norm of what attention adds over that of what it is added to,
    the mean over photos."""
    found = []

    def after(block, args, out):
        tokens, hw_shape = args
        read = block.norm1(tokens) if block.pre_norm else tokens
        added = block.attention(read, hw_shape)
        ratio = added.norm(dim=(1, 2)) / tokens.norm(dim=(1, 2))
        found.append(ratio.mean().item())

    blocks = analysis.blocks_of(model).values()
    handles = [block.register_forward_hook(after) for block in blocks]
    pixels, _ = task.arrays('val', side)
    model(next(batches(pixels, OF_MAPS, model)))
    for handle in handles:
        handle.remove()
    return found


def explained(model, task, side):
    """Score-CAM's maps of photos for their classes, of the input of the last block's
    attention, (photos, tokens)."""
    from pytorch_grad_cam import ScoreCAM
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    def to_maps(tokens):
        return tokens.mT.unflatten(-1, [int(tokens.size(1) ** 0.5)] * 2)

    model.prepare = lambda x: x  # masks hide normalized pixels
    layer = [*analysis.blocks_of(model).values()][-1].norm1
    pixels, labels = task.arrays('val', side)
    images = normalized(next(batches(pixels, OF_MAPS, model)))
    targets = [ClassifierOutputTarget(label) for label in labels[:OF_MAPS]]
    cam = ScoreCAM(model, [layer], reshape_transform=to_maps)
    with cam, contextlib.redirect_stderr(io.StringIO()):  # progress of each photo
        maps = torch.from_numpy(cam(images, targets))
    model.prepare = normalized
    cells = avg_pool2d(maps, model.backbone.feature_strides[-1]).flatten(1)
    return cells.double().numpy().round(2).tolist()
