"""Weights, images and recorded outputs of the official EfficientViT code, narrow.

``efficientvit_keys.json`` has names and shapes of official state dicts: of a classifier
and of a segmentor of each series. ``efficientvit_outputs.npz`` has the models' outputs
with :func:`weights` and :func:`image`, in float64: the maps of stages (``map0`` and so
on), and logits, or the segmentor's map of them, and the numbers of parameters of the
published models (``parameters/``). They were recorded on a CPU, torch 2.1.2, by running
this file on a checkout of github.com/mit-han-lab/efficientvit at de7d773:

    python efficientvit_fixture.py efficientvit

The official code runs unchanged, with stand-ins for its imports of triton, omegaconf,
segment_anything and onnxsim, whose functions these models never call. On the smallest
maps, the official attention multiplies queries and keys first.
"""

import sys

import recording
import torch

NUM_CLASSES = 5
NAMES = (
    'efficientvit_b_classifier',
    'efficientvit_l_classifier',
    'efficientvit_b_segmentor',
    'efficientvit_l_segmentor',
)
ARCHS = {
    'b': dict(embed_dims=[4, 8, 8, 16, 24], depths=[1, 1, 2, 1, 1], head_dims=8),
    'l': dict(embed_dims=[4, 4, 8, 8, 16], depths=[1, 1, 1, 1, 1], head_dims=8),
}
EPS = dict(b=1e-5, l=1e-7)
# widths of the classifiers' layers, and the segmentors' heads
WIDTHS = [12, 20]
HEADS = {
    'b': dict(channels=8, num_blocks=2, ratio=4, last_ratio=4),
    'l': dict(channels=8, num_blocks=1, ratio=1, last_ratio=None, block='fused'),
}
SIZES = ('b0', 'b1', 'b2', 'b3', 'l1', 'l2', 'l3')

RECORDING = recording.Recording('efficientvit')
weights, outputs = RECORDING.weights, RECORDING.outputs


def series_of(name):
    """The series of a recorded model, 'b' or 'l'."""
    return name.split('_')[1]


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    # the segmentor takes whole strides alone
    return recording.noise(1, 3, *((32, 64) if 'segmentor' in name else (33, 49)))


def run(model, x):
    """The recorded outputs of an official model."""
    maps = model.double().backbone(x.double())
    stages = [maps[f'stage{i}'] for i in range(1, 5)]
    out = model(x.double())
    key = 'seg_logits' if isinstance(out, dict) or out.dim() == 4 else 'logits'
    return {**{f'map{i}': out for i, out in enumerate(stages)}, key: out}


def build(official, name):
    """An official model for a recording."""
    series = series_of(name)
    arch, is_large = ARCHS[series], series == 'l'
    sizes = dict(width_list=arch['embed_dims'], depth_list=arch['depths'])
    if is_large:
        backbone = official.EfficientViTLargeBackbone(
            **sizes, qkv_dim=arch['head_dims']
        )
    else:
        backbone = official.EfficientViTBackbone(**sizes, dim=arch['head_dims'])
    activation = dict(act_func='gelu') if is_large else {}
    if 'classifier' in name:
        head = official.ClsHead(
            arch['embed_dims'][-1], WIDTHS, n_classes=NUM_CLASSES, **activation
        )
        return official.EfficientViTCls(backbone, head)
    options = HEADS[series]
    head = official.SegHead(
        fid_list=['stage4', 'stage3', 'stage2'],
        in_channel_list=arch['embed_dims'][:1:-1],
        stride_list=[32, 16, 8],
        head_stride=8,
        head_width=options['channels'],
        head_depth=options['num_blocks'],
        expand_ratio=options['ratio'],
        middle_op='fmbconv' if is_large else 'mbconv',
        final_expand=options['last_ratio'],
        n_classes=NUM_CLASSES,
        **activation,
    )
    return official.EfficientViTSeg(backbone, head)


def count(model):
    return torch.tensor(sum(x.numel() for x in model.parameters()))


def main(checkout):
    sys.path.insert(0, checkout)
    recording.stand_in(
        'triton',
        'omegaconf',
        'segment_anything',
        'onnxsim',
        jit=recording.register,
        SamAutomaticMaskGenerator=object,
    )
    from efficientvit.models import efficientvit as official
    from efficientvit.models.efficientvit.cls import ClsHead
    from efficientvit.models.efficientvit.seg import SegHead
    from efficientvit.models.nn.norm import set_norm_eps

    official.ClsHead, official.SegHead = ClsHead, SegHead
    models = {name: build(official, name) for name in NAMES}
    for name, model in models.items():
        set_norm_eps(model, EPS[series_of(name)])
    RECORDING.write(models, run, image)
    numbers = {
        f'{size}_classifier': count(getattr(official, f'efficientvit_cls_{size}')())
        for size in SIZES
    }
    for size in SIZES[:-1]:
        for data in ('cityscapes', 'ade20k')[: 1 if size == 'b0' else 2]:
            model = getattr(official, f'efficientvit_seg_{size}')(data)
            numbers[f'{size}_{data}'] = count(model)
    RECORDING.write_outputs('parameters', numbers)


if __name__ == '__main__':
    main(*sys.argv[1:])
