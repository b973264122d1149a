"""The small SOFT and SOFT++ that several claims train.

SOFT++'s pyramid with its 32 channels a head and its filters of 9, 5, 3, narrower and
shallower. Cells of 4, 2 and 2 in place of 8, 4 and 2: an image of 64 pixels then has
16, 16 and 4 landmarks, and one of 224 pixels 196, 196 and 49.
"""

from ..classification import RECIPE

ARCH = dict(embed_dims=[32, 64, 128, 128], depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 4])
TINY = dict(embed_dims=[8, 16, 16, 16], depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 2])
RATIOS = (4, 2, 2, 1)
NAMES = {'SOFT': 'SOFT', 'SOFT++': 'SOFTPlusPlus'}
SETTINGS = dict(arch=ARCH, recipe=RECIPE, images=(2000, 600))
SMOKE = dict(arch=TINY, recipe=dict(RECIPE, side=32, batch=4, steps=2), images=(6, 3))


def backbone(settings, name='SOFT++', **options):
    """Config of a small SOFT or SOFT++ for images of the recipe's size."""
    return dict(
        type=NAMES[name],
        arch=settings['arch'],
        sampling_ratios=list(RATIOS),
        img_size=settings['recipe']['side'],
        out_indices=(3,),
        **options,
    )
