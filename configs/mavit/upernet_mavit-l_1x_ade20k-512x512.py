"""UperNet with MAViT-L on ADE20K, 1x (160k iterations, the authors' 2x, mixed precision).
python tools/train.py configs/mavit/upernet_mavit-l_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_mavit-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
model = dict(
    backbone=dict(arch='large', drop_path_rate=0.55),
    decode_head=dict(in_channels=[96, 192, 448, 640]),
    auxiliary_head=dict(in_channels=448),
)
optim_wrapper = dict(type='AmpOptimWrapper')
