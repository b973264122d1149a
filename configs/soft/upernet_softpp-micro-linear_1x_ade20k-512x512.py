"""UperNet with linear SOFT++-Micro on ADE20K, 1x (160k iterations).
python tools/train.py configs/soft/upernet_softpp-micro-linear_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-micro-linear.py', '../_base_/settings/ade20k-512x512_soft-1x.py']

# ten times that of the larger models, which suits small sets of photos better
optim_wrapper = dict(optimizer=dict(lr=6e-4))
