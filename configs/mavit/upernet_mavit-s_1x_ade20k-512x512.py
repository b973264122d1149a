"""UperNet with MAViT-S on ADE20K, 1x (160k iterations, the authors' 2x, mixed precision).
python tools/train.py configs/mavit/upernet_mavit-s_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_mavit-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
model = dict(
    backbone=dict(arch='small', drop_path_rate=0.15),
    decode_head=dict(in_channels=[64, 128, 320, 512]),
    auxiliary_head=dict(in_channels=320),
)
optim_wrapper = dict(type='AmpOptimWrapper')
