"""UperNet with CSWin-T with softmax attention on ADE20K, 1x (160k iterations).

No result of a paper is quoted for it.

    python tools/train.py \
        configs/attention_zoo/upernet_cswin-t-global_1x_ade20k-512x512.py \
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
        arch='t24181',
        attention='global',
        drop_path_rate=0.2,
    ),
    decode_head=dict(in_channels=[64, 128, 256, 512], num_classes=150),
    auxiliary_head=dict(in_channels=256, num_classes=150),
)

optim_wrapper = dict(optimizer=dict(lr=6e-5))
