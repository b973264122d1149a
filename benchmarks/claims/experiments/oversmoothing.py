"""High frequencies and token similarity over the depth of plain ViTs."""

import torch
from side_by_side.plot import Panel

from mmlinattn.analysis import hc_proportion, token_similarity, watch
from mmlinattn_tools.figures import HC_PROPORTION

from ..claim import Claim, Part, scores_doubt, spread, values_of
from ..classification import EASY_RECIPE, EASY_SHAPES, accuracy, normalized, trained

TECHNIQUES = {
    'plain': {},
    'AttnScale': dict(attn_scale=True),
    'FeatScale': dict(feat_scale=True),
}
SHALLOW, DEEP = '12 layers', '24 layers'
DEPTHS = {SHALLOW: 12, DEEP: 24}
MEASURES = {'frequencies': '‖HC[X]‖ / ‖DC[X]‖', 'similarities': 'mean |cos| of tokens'}
AXES = dict(frequencies=HC_PROPORTION, similarities=r'mean $|\cos|$ of tokens')
LEARNED = scores_doubt('accuracy', 0.45)


def units(settings):
    return [f'{depth}, {name}' for depth in DEPTHS for name in TECHNIQUES]


def measure(unit, context):
    """Accuracy, and the measures after every block."""
    depth, technique = unit.split(', ')
    settings = context.settings
    side = settings['recipe']['side']
    model = trained(
        dict(
            type='VisionTransformer',
            arch=dict(settings['arch'], num_layers=settings['depths'][depth]),
            img_size=side,
            patch_size=settings['patch'],
            out_type='cls_token',
            **TECHNIQUES[technique],
        ),
        context,
    )
    images, _ = context.data.resized('val', side)
    found = dict(frequencies=[], similarities=[])

    def look(call):
        found['frequencies'].append(hc_proportion(call.tokens).mean().item())
        found['similarities'].append(token_similarity(call.tokens).mean().item())

    with torch.no_grad(), watch(model.backbone, on_block=look):
        batch = images[: settings['looks']].to(context.device)
        model.backbone(normalized(batch))
    return dict(found, accuracy=accuracy(model, context, side))


def rise(of_seed, depth):
    """Of a plain model's token similarity, from the first block to the last."""
    similarities = of_seed[f'{depth}, plain']['similarities']
    return similarities[-1] - similarities[0]


def gain(of_seed, technique, key):
    """The deep model's value with a technique less the plain one's; of lists the last
    block's."""
    values = [of_seed[f'{DEEP}, {x}'][key] for x in (technique, 'plain')]
    new, plain = (x[-1] if isinstance(x, list) else x for x in values)
    return new - plain


def tables(runs):
    rows = []
    for unit in next(iter(runs.values())):
        cells = [unit, spread(values_of(runs, unit, 'accuracy'))]
        for key in MEASURES:
            values = values_of(runs, unit, key)
            cells += [spread([x[place] for x in values]) for place in (0, -1)]
        rows.append(cells)
    titles = ['layers, technique', 'accuracy']
    for label in MEASURES.values():
        titles += [f'{label} after block 1', 'after the last']
    return [('Means and standard deviations over seeds', titles, rows)]


def panels(runs):
    found = []
    for key, label in AXES.items():
        curves = {}
        for unit in next(iter(runs.values())):
            values = values_of(runs, unit, key)
            curves[unit] = (list(range(1, len(values[0]) + 1)), values)
        found.append(Panel('', 'block', label, curves))
    return found


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
    'pixels (36 patches of 8 pixels; shapes are large ones without stripes and '
    'distractors), trained for 800 steps of 32 images with the same recipe, without '
    'dropout and stochastic depth, which would need more steps. Measures are taken '
    'after every block, on 64 held-back images, class token included: it counts as a '
    'token.',
    limits='The paper trains for 300 epochs. 800 steps leave the learned vectors '
    'little time to move from zero, and ViTs from scratch little to become accurate.',
    settings=dict(
        depths=DEPTHS,
        arch=dict(embed_dims=64, num_heads=4),
        patch=8,
        looks=64,
        recipe=dict(EASY_RECIPE, side=48),
        shapes=EASY_SHAPES,
        images=(2000, 600),
    ),
    smoke=dict(
        depths={SHALLOW: 2, DEEP: 3},
        arch=dict(embed_dims=8, num_heads=2),
        patch=16,
        looks=2,
        recipe=dict(EASY_RECIPE, side=32, batch=4, steps=2),
        images=(6, 3),
    ),
    minutes=20,
    units=units,
    measure=measure,
    parts=(
        Part(
            "rise of the plain 24 layers' token similarity, first block to last",
            lambda x: rise(x, DEEP),
        ),
        Part(
            'the same of 24 layers less that of 12',
            lambda x: rise(x, DEEP) - rise(x, SHALLOW),
        ),
        *(
            Part(
                f'24 layers: similarity after the last block, plain less {name}',
                lambda x, name=name: -gain(x, name, 'similarities'),
            )
            for name in ('AttnScale', 'FeatScale')
        ),
        *(
            Part(
                f'24 layers: accuracy with {name} less that without',
                lambda x, name=name: gain(x, name, 'accuracy'),
                doubt=LEARNED,
            )
            for name in ('AttnScale', 'FeatScale')
        ),
    ),
    tables=tables,
    panels=panels,
)
