"""UperNet with Swin-S + AttnScale on Cityscapes, 1x (40k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_swin-s-attnscale_1x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/upernet.py',
    'mmseg::_base_/datasets/cityscapes_768x768.py',
    '../_base_/schedules/cityscapes-seg_1x.py',
    '../_base_/seg_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(768, 768)),
    backbone=dict(
        type='mmlinattn.SwinTransformer',
        arch='small',
        drop_path_rate=0.3,
        attn_scale=True,
    ),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
    test_cfg=dict(mode='slide', crop_size=(768, 768), stride=(512, 512)),
)

optim_wrapper = dict(optimizer=dict(lr=6e-5))
