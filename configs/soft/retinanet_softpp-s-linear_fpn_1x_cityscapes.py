"""RetinaNet with linear SOFT++-Small on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/soft/retinanet_softpp-s-linear_fpn_1x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-s-linear.py', '../_base_/settings/cityscapes-detection_1x.py']
model = _base_.cityscapes_model
