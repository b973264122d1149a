"""UperNet with MAViT-T on ADE20K, 1x (160k iterations, the authors' 2x, mixed precision).
python tools/train.py configs/mavit/upernet_mavit-t_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_mavit-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
optim_wrapper = dict(type='AmpOptimWrapper')
