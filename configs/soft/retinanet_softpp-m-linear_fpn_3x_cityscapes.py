"""RetinaNet with linear SOFT++-Medium on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/soft/retinanet_softpp-m-linear_fpn_3x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-s-linear.py', '../_base_/settings/cityscapes-detection_3x.py']
model = dict(backbone=dict(arch='medium'), **_base_.cityscapes_model)
