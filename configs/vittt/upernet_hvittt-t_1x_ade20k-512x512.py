"""UperNet with H-ViT^3-T on ADE20K, 1x (160k iterations, mixed precision).
Authors' README: mIoU 48.0, 57.9M parameters, 946 GFLOPs.
    python tools/train.py configs/vittt/upernet_hvittt-t_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_hvittt-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
optim_wrapper = dict(type='AmpOptimWrapper')
