"""UperNet with DeiT-S12 + AttnScale on ADE20K, 3x (480k iterations).
python tools/train.py configs/antioversmoothing/upernet_deit-s12-attnscale_3x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_deit-s12.py', '../_base_/settings/ade20k-512x512_swin-3x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/attnscale_small_12.pth'
model = dict(backbone=dict(attn_scale=True))
