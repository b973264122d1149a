"""ELFATT's ablations, and how close its rows are to softmax attention's."""

import torch

from mmlinattn.analysis import attention_rows, watch
from mmlinattn.registry import build_model

from ..claim import Claim, Part, scores_doubt, spread, values_of
from ..classification import EASY_RECIPE, EASY_SHAPES, accuracy, normalized, trained
from ..plots import Panel, plot_bars

BLOCK = 16
# The papers' learning rate is for batches of 1,024. ELFATT learned with this one, which
# goes with the square root of the batch, and not with theirs.
SWIN_RECIPE = dict(EASY_RECIPE, lr=2e-4)
SOFTMAX = dict(type='SoftmaxAttention', lepe=True)
EFFICIENT = dict(type='EfficientAttention', lepe=True)


def elfatt(**options):
    return dict(type='ELFATT', block_size=BLOCK, **options)


def levels(linear, softmax=SOFTMAX, count=3):
    """ELFATT's arrangement, with a linear attention in the first levels only."""
    mixed = [softmax, linear]
    return [linear if i < min(count, 2) else softmax for i in range(2)] + [
        mixed if count > 2 else softmax,
        softmax,
    ]


VARIANTS = {
    'ELFATT': levels(elfatt()),
    'blocks of 4': levels(dict(elfatt(), block_size=4)),
    'blocks of 64': levels(dict(elfatt(), block_size=64)),
    'without LePE': levels(elfatt(lepe=False), dict(SOFTMAX, lepe=False)),
    'c₁:c₂ = 1:3': levels(elfatt(split_ratio=0.25)),
    'c₁:c₂ = 3:1': levels(elfatt(split_ratio=0.75)),
    'levels 1 and 2': levels(elfatt(), count=2),
    'level 1': levels(elfatt(), count=1),
    'efficient': levels(EFFICIENT),
    'softmax': [SOFTMAX] * 4,
}
RIVALS = {'ELFATT': elfatt(), 'efficient': EFFICIENT}


def units(settings):
    return list(VARIANTS)


def model_config(settings, attention):
    """Swin's pyramid with ELFATT's overlapping embeddings, whatever the attention."""
    from mmlinattn.models.backbones.presets import OVERLAPPING_MERGING, OVERLAPPING_STEM

    return dict(
        type='mmlinattn.SwinTransformer',
        arch=settings['arch'],
        attention=attention,
        patch_embed=OVERLAPPING_STEM,
        merging=OVERLAPPING_MERGING,
        out_indices=(3,),
    )


def measure(unit, context):
    model = trained(model_config(context.settings, VARIANTS[unit]), context)
    side = context.settings['recipe']['side']
    found = dict(accuracy=accuracy(model, context, side))
    if unit == 'softmax':
        found['distances'] = distances(model, context)
    return found


def distances(model, context):
    """Of rows of the rivals, given a trained softmax attention's q, k and v.

    Channel by channel, because ELFATT's heads are not softmax attention's: the norm of
    the difference of two rows over the norm of softmax attention's, the mean over
    channels, queries and images.

    Returns:
        dict[str, list[float]]: By rival, for every attention of the first three levels.
    """
    found = {name: [] for name in RIVALS}

    def look(call):
        if call.name.startswith('stages.3'):
            return
        shape = (call.q, call.k, call.v, call.hw_shape, call.queries(16))
        truth = per_channel(call.module, *shape)
        size = truth.norm(dim=-1)
        for name, cfg in RIVALS.items():
            rival = build_model(
                cfg, embed_dims=call.module.embed_dims, num_heads=call.module.num_heads
            ).to(call.q.device)
            rows = per_channel(rival.eval(), *shape)
            found[name].append(((rows - truth).norm(dim=-1) / size).mean().item())

    images, _ = context.data.tensors('val', context.settings['recipe']['side'])
    with torch.no_grad(), watch(model.backbone, look):
        batch = images[: context.settings['looks']].to(context.device)
        model.backbone(normalized(batch))
    return found


def per_channel(attention, q, k, v, hw_shape, queries):
    """Rows of the matrix that each channel of the values is multiplied with,
    (B, C, queries, M)."""
    rows = attention_rows(attention, q, k, v, hw_shape, queries)
    dims = torch.tensor(attention.dims_of_heads, device=rows.device)
    return rows.repeat_interleave(dims, 1)


def closer(of_seed):
    """By how much ELFATT's rows are closer, the mean over layers."""
    found = of_seed['softmax']['distances']
    return mean(found['efficient']) - mean(found['ELFATT'])


def mean(values):
    return sum(values) / len(values)


def more(of_seed, other):
    return of_seed['ELFATT']['accuracy'] - of_seed[other]['accuracy']


SPREAD = scores_doubt('accuracy', 0.45)


def tables(runs):
    accuracies = [
        [unit, spread(values_of(runs, unit, 'accuracy'))] for unit in VARIANTS
    ]
    first = next(iter(runs.values()))['softmax']['distances']
    rows = [
        [
            f'attention {i + 1}',
            *(
                spread([x[i] for x in values_of(runs, 'softmax', 'distances', name)])
                for name in RIVALS
            ),
        ]
        for i in range(len(first['ELFATT']))
    ]
    return [
        ('Accuracy on held-back images', ['attention', 'accuracy'], accuracies),
        (
            'Relative distance of rows from those of softmax attention, with q, k and '
            'v of the trained model with softmax attention',
            ['', *RIVALS],
            rows,
        ),
    ]


def plot(runs, path):
    accuracies = {unit: values_of(runs, unit, 'accuracy') for unit in VARIANTS}
    rows = {
        name: list(map(mean, values_of(runs, 'softmax', 'distances', name)))
        for name in RIVALS
    }
    plot_bars(
        [
            Panel('small Swin', 'accuracy, held-back images', '', accuracies),
            Panel('rows', 'relative distance from softmax attention', '', rows),
        ],
        path,
    )


CLAIM = Claim(
    name='elfatt',
    title="ELFATT's parts",
    claim='ELFATT is as accurate as softmax attention and more than efficient '
    'attention, whose rows are further from those of softmax attention. LePE helps, '
    'and equal halves are a good choice.',
    paper='ELFATT, Tables I to V and its figures: Swin-T 82.7 on ImageNet; block '
    'size, LePE, levels and c₁:c₂ are its ablations.',
    setting='Swin with 32 to 256 channels, 1, 1, 2 and 1 blocks and the overlapping '
    'embeddings of ELFATT in all variants, 800 steps of 32 images of 64 pixels: large '
    'shapes without stripes and distractors. The learning rate is 2e-4, as that of the '
    'papers is for batches of 1,024. Blocks of 4 × 4 tokens are to the maps of 16 × 16 '
    'what 14 × 14 are to 56 × 56. As good means: not more than 0.02 worse, which is 12 '
    'of 600 images. Distances of rows take the trained softmax model and give its q, k '
    'and v to the others, channel by channel.',
    limits='800 steps from scratch favor what learns fast; ImageNet takes 300 epochs.',
    settings=dict(
        arch=dict(embed_dims=32, depths=[1, 1, 2, 1], num_heads=[2, 2, 4, 8]),
        recipe=SWIN_RECIPE,
        looks=8,
        shapes=dict(classification=EASY_SHAPES),
        images=dict(classification=(2000, 600)),
    ),
    smoke=dict(
        arch=dict(embed_dims=8, depths=[1, 1, 2, 1], num_heads=[2, 2, 4, 4]),
        recipe=dict(SWIN_RECIPE, side=32, batch=4, steps=1),
        looks=1,
        images=dict(classification=(6, 3)),
    ),
    minutes=25,
    units=units,
    measure=measure,
    parts=(
        Part(
            "distance of efficient attention's rows from softmax attention's, less "
            "that of ELFATT's",
            closer,
            doubt=SPREAD,
        ),
        Part(
            'accuracy with ELFATT less that with softmax attention',
            lambda x: more(x, 'softmax'),
            margin=-0.02,
            doubt=SPREAD,
        ),
        Part(
            'accuracy with ELFATT less that with efficient attention',
            lambda x: more(x, 'efficient'),
            doubt=SPREAD,
        ),
        Part(
            'accuracy with LePE less that without',
            lambda x: more(x, 'without LePE'),
            doubt=SPREAD,
        ),
        *(
            Part(
                f'accuracy with equal halves less that with {name}',
                lambda x, name=name: more(x, name),
                margin=-0.02,
                doubt=SPREAD,
            )
            for name in ('c₁:c₂ = 1:3', 'c₁:c₂ = 3:1')
        ),
    ),
    tables=tables,
    plot=plot,
    data=('classification',),
)
