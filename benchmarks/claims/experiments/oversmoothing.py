"""High frequencies and token similarity over the depth of plain ViTs."""

import torch

from mmlinattn.analysis import hc_proportion, token_similarity, watch

from ..claim import Claim, Part, scores_doubt, spread, values_of
from ..classification import EASY_RECIPE, EASY_SHAPES, accuracy, normalized, trained
from ..plots import Panel, plot_lines

TECHNIQUES = {
    'plain': {},
    'AttnScale': dict(attn_scale=True),
    'FeatScale': dict(feat_scale=True),
}


def units(settings):
    return [f'{depth} {name}' for depth in settings['depths'] for name in TECHNIQUES]


def measure(unit, context):
    """Accuracy, and the measures after every block."""
    depth, technique = unit.split()
    settings = context.settings
    side = settings['recipe']['side']
    model = trained(
        dict(
            type='mmlinattn.VisionTransformer',
            arch=dict(settings['arch'], num_layers=int(depth)),
            img_size=side,
            patch_size=settings['patch'],
            out_type='cls_token',
            **TECHNIQUES[technique],
        ),
        context,
    )
    images, _ = context.data.tensors('val', side)
    frequencies, similarities = [], []

    def look(call):
        frequencies.append(hc_proportion(call.tokens).mean().item())
        similarities.append(token_similarity(call.tokens).mean().item())

    with torch.no_grad(), watch(model.backbone, on_block=look):
        batch = images[: settings['looks']].to(context.device)
        model.backbone(normalized(batch))
    return dict(
        accuracy=accuracy(model, context, side),
        frequencies=frequencies,
        similarities=similarities,
        vectors=vectors(model),
    )


def vectors(model):
    """What the techniques learned: over heads or channels, mean and size by block.

    Returns:
        dict[str, dict[str, list[float]]]: By name, 'mean' and 'size', which is the
        root mean square.
    """
    found = {}
    for name, parameter in model.named_parameters():
        last = name.rpartition('.')[2]
        if last in ('omega', 'dc_scale', 'hc_scale'):
            of_name = found.setdefault(last, dict(mean=[], size=[]))
            of_name['mean'].append(parameter.mean().item())
            of_name['size'].append(parameter.square().mean().sqrt().item())
    return found


def rise(of_seed, depth):
    """Of a plain model's token similarity, from the first block to the last."""
    similarities = of_seed[f'{depth} plain']['similarities']
    return similarities[-1] - similarities[0]


def gain(of_seed, technique, key, depth=24):
    """A technique's value less the plain model's; of lists the last blocks'."""
    values = [of_seed[f'{depth} {x}'][key] for x in (technique, 'plain')]
    new, plain = (x[-1] if isinstance(x, list) else x for x in values)
    return new - plain


LEARNED = scores_doubt('accuracy', 0.45)


def deep(of_seed):
    return max(int(unit.split()[0]) for unit in of_seed)


def shallow(of_seed):
    return min(int(unit.split()[0]) for unit in of_seed)


def tables(runs):
    rows = []
    for unit in next(iter(runs.values())):
        cells = [unit, spread(values_of(runs, unit, 'accuracy'))]
        for key in ('frequencies', 'similarities'):
            values = values_of(runs, unit, key)
            for place in (0, -1):
                cells.append(spread([x[place] for x in values]))
        text = [
            f'{name} {of_blocks(runs, unit, name, "mean")}, size '
            f'{of_blocks(runs, unit, name, "size")}'
            for name in next(iter(runs.values()))[unit]['vectors']
        ]
        rows.append([*cells, '; '.join(text) or '-'])
    titles = [
        'layers, technique',
        'accuracy',
        '‖HC‖/‖DC‖ after block 1',
        'after the last',
        'similarity after block 1',
        'after the last',
        'learned, mean over blocks of mean and root mean square',
    ]
    return [('Means and standard deviations over seeds', titles, rows)]


def of_blocks(runs, unit, name, key):
    values = values_of(runs, unit, 'vectors', name, key)
    return spread([sum(x) / len(x) for x in values], digits=4)


def plot(runs, path):
    first = next(iter(runs.values()))
    panels = []
    for key, label in (
        ('frequencies', '‖HC[X]‖ / ‖DC[X]‖'),
        ('similarities', 'mean |cos| of tokens'),
    ):
        curves = {}
        for unit in first:
            values = values_of(runs, unit, key)
            curves[unit] = (list(range(1, len(values[0]) + 1)), values)
        panels.append(Panel(label, 'block', label, curves))
    for key, title in (('mean', 'mean'), ('size', 'root mean square')):
        curves = {}
        for unit in first:
            for name in first[unit]['vectors']:
                values = values_of(runs, unit, 'vectors', name, key)
                curves[f'{unit}: {name}'] = (list(range(1, len(values[0]) + 1)), values)
        panels.append(Panel('learned, 0 at the start', 'block', title, curves, level=0))
    plot_lines(panels, path)


CLAIM = Claim(
    name='oversmoothing',
    title='AttnScale and FeatScale against oversmoothing',
    claim='In a plain ViT, attention is a low-pass filter: tokens become more alike '
    'from block to block. AttnScale and FeatScale keep high frequencies, which makes '
    'tokens of deep layers less alike and deep models more accurate.',
    paper='*Anti-Oversmoothing in Deep Vision Transformers*, Figures 1, 4, 11 and 12, '
    'and Tables 1 to 3: DeiT-S with 12 layers 79.8 (80.7 with AttnScale, 80.9 with '
    'FeatScale), with 24 layers 80.5 (81.1, 81.3).',
    setting='ViTs of 12 and 24 layers, 64 channels and 4 heads, on images of 48 '
    'pixels (36 patches of 8 pixels) with large shapes, without stripes and '
    'distractors, trained for 800 steps of 32 images with the same recipe, without '
    'dropout and stochastic depth, which would need more steps. Measures are taken '
    'after every block, on 64 held-back images, class token included: it counts as a '
    'token.',
    limits='The paper trains for 300 epochs. 800 steps leave the learned vectors '
    'little time to move from zero, and ViTs from scratch little to become accurate.',
    settings=dict(
        depths=[12, 24],
        arch=dict(embed_dims=64, num_heads=4),
        patch=8,
        looks=64,
        recipe=dict(EASY_RECIPE, side=48),
        shapes=dict(classification=EASY_SHAPES),
        images=dict(classification=(2000, 600)),
    ),
    smoke=dict(
        depths=[2, 3],
        arch=dict(embed_dims=8, num_heads=2),
        patch=16,
        looks=2,
        recipe=dict(EASY_RECIPE, side=32, batch=4, steps=2),
        images=dict(classification=(6, 3)),
    ),
    minutes=20,
    units=units,
    measure=measure,
    parts=(
        Part(
            "rise of the plain 24 layers' token similarity, first block to last",
            lambda x: rise(x, deep(x)),
        ),
        Part(
            'the same of 24 layers less that of 12',
            lambda x: rise(x, deep(x)) - rise(x, shallow(x)),
        ),
        *(
            Part(
                f'24 layers: similarity after the last block, plain less {name}',
                lambda x, name=name: -gain(x, name, 'similarities', deep(x)),
            )
            for name in ('AttnScale', 'FeatScale')
        ),
        *(
            Part(
                f'24 layers: accuracy with {name} less that without',
                lambda x, name=name: gain(x, name, 'accuracy', deep(x)),
                doubt=LEARNED,
            )
            for name in ('AttnScale', 'FeatScale')
        ),
    ),
    tables=tables,
    plot=plot,
    data=('classification',),
)
