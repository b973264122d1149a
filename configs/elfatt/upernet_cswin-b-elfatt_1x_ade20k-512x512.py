"""UperNet with CSWin-B-ELFATT on ADE20K, 1x (160k iterations).

No figure in the paper.

    python tools/train.py configs/elfatt/upernet_cswin-b-elfatt_1x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/upernet.py',
    'mmseg::_base_/datasets/ade20k.py',
    '../_base_/schedules/ade20k_1x.py',
    '../_base_/seg_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 512)),
    backbone=dict(
        type='mmlinattn.CSWinTransformer',
        arch='b36292',
        attention='elfatt',
        drop_path_rate=0.6,
    ),
    decode_head=dict(in_channels=[96, 192, 384, 768], num_classes=150),
    auxiliary_head=dict(in_channels=384, num_classes=150),
)

optim_wrapper = dict(optimizer=dict(lr=6e-5))
