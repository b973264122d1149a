"""Settings that the claims with detectors share: one training serves several."""

from ..detection import BN, RECIPE

IMAGES = (400, 120)
SETTINGS = dict(arch='tiny', recipe=RECIPE)
TINY = dict(embed_dims=[8, 16, 16, 16], depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 2])
SMOKE_RECIPE = dict(RECIPE, side=64, batch=2, steps=2, channels=8)


def soft(settings, attn_norm):
    """Config and channels of SOFT++ in a detector, normalized or not."""
    arch = settings['arch']
    channels = [128, 256, 512] if arch == 'tiny' else list(arch['embed_dims'][1:])
    cfg = dict(
        type='mmlinattn.SOFTPlusPlus',
        arch=arch,
        attn_norm=attn_norm,
        norm_cfg=BN,
        out_indices=(1, 2, 3),
    )
    return cfg, channels
