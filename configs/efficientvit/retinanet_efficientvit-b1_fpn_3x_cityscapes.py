"""RetinaNet with EfficientViT-B1 on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/efficientvit/retinanet_efficientvit-b1_fpn_3x_cityscapes.py
"""

_base_ = ['../_base_/models/retinanet_efficientvit-b1.py', '../_base_/settings/cityscapes-detection_swin-3x.py']
model = _base_.cityscapes_model
