"""Small models of timm's names."""

PYRAMID = dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 2, 1], num_heads=[1, 2, 3, 4])
PRESET = dict(embed_dims=8, depths=[2, 1, 1, 1], num_heads=[2, 2, 4, 4])
PLAIN = dict(embed_dims=24, num_layers=4, num_heads=3)
ARCHS = dict(
    swin=PRESET,
    cswin=PRESET,
    deit=PLAIN,
    cait=dict(PLAIN, num_class_layers=1),
    vittt=PLAIN,
)


def small(name):
    """Options of the backbone for a miniature."""
    family = name.partition('_')[0]
    depth = dict(num_layers=4) if family == 'deit' else {}
    return dict(arch=ARCHS.get(family, PYRAMID), **depth)
