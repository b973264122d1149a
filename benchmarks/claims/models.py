"""The small models that the claims train: two pyramids of three stages and ten blocks,
SOFT's and Swin's, with 1 million parameters each, and plain ViTs.

At 112 pixels, softmax-free stages have 784 and 196 tokens and 49 landmarks; at 256
pixels, 4,096 and 1,024 tokens and 256 landmarks.
"""

import torch

from mmlinattn.models import SoftmaxAttention, SoftmaxFreeAttention, VisionTransformer
from mmlinattn.registry import MODELS

SIDE = 112
ARCH = dict(embed_dims=[32, 64, 128], depths=[1, 6, 3], num_heads=[1, 2, 4])
STEM = dict(type='ConvStem', mid_channels=16)
NO_INVERSE = 100.0  # a ridge that leaves hardly anything of an inverse


class NoAttention:
    """A control: what is left of an attention are its local filters."""

    def attend(self, q, k, v, hw_shape):
        return torch.zeros_like(v)


@MODELS.register_module()
class NoSoftmaxFreeAttention(NoAttention, SoftmaxFreeAttention):
    """What is left of SOFT++'s attention."""


@MODELS.register_module()
class RankOneAttention(SoftmaxFreeAttention):
    """SOFT++ of tokens that are all alike, a control: N / m times the mean value."""

    def attend(self, q, k, v, hw_shape):
        num_landmarks = self.sampler(self.split_heads(q), hw_shape).size(2)
        return (v.size(1) / num_landmarks) * v.mean(1, keepdim=True).expand_as(v)


@MODELS.register_module()
class MeanAttention(SoftmaxAttention):
    """Softmax attention of keys that are all alike, a control: the mean value."""

    def attend(self, q, k, v, hw_shape):
        return v.mean(1, keepdim=True).expand_as(v)


@MODELS.register_module()
class NoSoftmaxAttention(NoAttention, SoftmaxAttention):
    """What is left of softmax attention."""


@MODELS.register_module()
class PatchBag(VisionTransformer):
    """A ViT without positions: but for its attention, a bag of patches."""

    def __init__(self, **options):
        super().__init__(**options)
        self.pos_embed = None


def soft(type='SOFTPlusPlus', **options):
    """Config of a SOFT pyramid. In its last stage, 7 x 7 tokens and a class token,
    attention is softmax."""
    cfg = dict(type=type, arch=ARCH, img_size=SIDE, out_indices=[2])
    cfg.update(sampling_ratios=[4, 2, 1], kernel_sizes=[9, 5, 3], patch_embed=STEM)
    return dict(cfg, **options)


def swin(*attention):
    """Config of a Swin pyramid with SOFT's stem and convolutions between stages, with
    which it learns as fast. Its second stage has two attentions in turns, as in
    ELFATT's models; its last one softmax."""
    first, *second = ({**x, 'lepe': True} for x in attention)
    last = dict(type='SoftmaxAttention', lepe=True)
    return dict(
        type='SwinTransformer',
        arch=ARCH,
        attention=[first, second or [first], last],
        patch_embed=STEM,
        merging=dict(type='ConvEmbedding', act_cfg=None),
        out_indices=[2],
    )


def vit(depth, **options):
    """Config of a plain ViT for images of 32 pixels."""
    arch = dict(embed_dims=64, num_layers=depth, num_heads=2)
    options = dict(dict(out_type='cls_token'), **options)
    vit = dict(type='VisionTransformer', arch=arch, img_size=32, patch_size=4)
    return dict(vit, **options)


FREE = dict(sampling_ratio=2, sampler='pool', kernel_size=0, attn_norm=True)


def flat(type='SoftmaxFreeAttention', **options):
    """Config of a ViT of six layers without class token and positions, of 64 tokens and
    with SOFT++ 16 landmarks."""
    if type == 'SoftmaxFreeAttention':
        options = dict(FREE, **options)
    attention = dict(type=type, **options)
    options = dict(attention=attention, with_cls_token=False, out_type='featmap')
    return dict(vit(6, block=dict(ffn_ratio=1), **options), type='PatchBag')


def control(kernels=(9, 5), sampler='conv', type='NoSoftmaxFreeAttention'):
    """SOFT++ with a control in place of its attention."""
    control = dict(type=type, sampler=sampler)
    cells = zip((4, 2), kernels)
    stages = [dict(control, sampling_ratio=r, kernel_size=k) for r, k in cells]
    return soft(attention=[*stages, None])


SOFTMAX = dict(type='SoftmaxAttention')
ELFATT = dict(type='ELFATT', block_size=49)
EFFICIENT = dict(type='EfficientAttention')
NONE = dict(type='NoSoftmaxAttention')
# With landmarks by convolution and local filters, attention is hardly used, and nothing
# would be told apart.
BARE = dict(sampler='pool', kernel_sizes=[0, 0, 0])
INVERSES = {
    'SOFT++ bare': soft(**BARE),
    'SOFT++ bare no attention': control((0, 0), 'pool'),
    'SOFT++ bare ridge 0.1': soft(solver='cholesky', ridge=0.1, **BARE),
}
PYRAMIDS = {
    'Swin softmax': swin(SOFTMAX),
    'Swin ELFATT': swin(ELFATT, SOFTMAX, ELFATT),
    'SOFT': soft('SOFT'),
    'SOFT++': soft(),
}
CLASSIFIERS = {  # alone, neither for boxes nor for pixels
    'SOFT++ bare rank one': control((0, 0), 'pool', 'RankOneAttention'),
    'SOFT++ bare ridge 0.001': soft(solver='cholesky', ridge=0.001, **BARE),
    'SOFT++ bare ridge 100': soft(solver='cholesky', ridge=NO_INVERSE, **BARE),
    'SOFT bare': soft('SOFT', **BARE),
    'Swin no attention': swin(NONE),
    'Swin rank one': swin(dict(type='MeanAttention')),
    'Swin efficient': swin(EFFICIENT, SOFTMAX, EFFICIENT),
    'SOFT++ no attention': control(),
}
FLAT_INVERSES = {
    'flat SOFT++': flat(),
    'flat no attention': flat(type='NoSoftmaxFreeAttention', **FREE),
    'flat rank one': flat(type='RankOneAttention', **FREE),
    'flat SOFT++ ridge 0.001': flat(solver='cholesky', ridge=0.001),
    'flat SOFT++ ridge 1': flat(solver='cholesky', ridge=1.0),
    'flat SOFT++ ridge 100': flat(solver='cholesky', ridge=NO_INVERSE),
}
FLAT = {
    'flat softmax': flat(**SOFTMAX),
    'flat ELFATT': flat(**dict(ELFATT, block_size=16, lepe=False)),
    'flat efficient': flat(**EFFICIENT),
    'flat SOFT++ 4 landmarks': flat(num_landmarks=4),
    'flat SOFT++ conv': flat(sampler='conv'),
    'flat SOFT++ random': flat(sampler='random'),
}
VITS = {f'ViT-{depth}': vit(depth) for depth in (12, 24)}
BACKBONES = {**INVERSES, **PYRAMIDS, **CLASSIFIERS, **FLAT_INVERSES, **FLAT, **VITS}
# These have the learning rate of another one.
LIKE = {
    **{x: 'SOFT++ bare' for x in BACKBONES if x.startswith('SOFT++ bare ')},
    **{x: 'flat SOFT++' for x in BACKBONES if x.startswith('flat SOFT++ ')},
    'flat no attention': 'flat SOFT++',
    'flat rank one': 'flat SOFT++',
    'Swin no attention': 'Swin softmax',
    'Swin rank one': 'Swin softmax',
}
