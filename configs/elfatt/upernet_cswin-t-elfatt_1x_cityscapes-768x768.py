"""UperNet with CSWin-T-ELFATT on Cityscapes, 1x (40k iterations).

No figure in the paper.

Blocks of 196 tokens in every level, as in all of the paper's tables but the
first; weights of the ImageNet recipe, with 49, 49 and 196, fit.

    python tools/train.py \
        configs/elfatt/upernet_cswin-t-elfatt_1x_cityscapes-768x768.py \
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
        type='mmlinattn.CSWinTransformer',
        arch='t24181',
        attention='elfatt',
        drop_path_rate=0.2,
    ),
    decode_head=dict(in_channels=[64, 128, 256, 512]),
    auxiliary_head=dict(in_channels=256),
    test_cfg=dict(mode='slide', crop_size=(768, 768), stride=(512, 512)),
)

optim_wrapper = dict(optimizer=dict(lr=6e-5))
