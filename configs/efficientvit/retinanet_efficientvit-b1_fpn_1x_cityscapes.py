"""RetinaNet with EfficientViT-B1 on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/efficientvit/retinanet_efficientvit-b1_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/retinanet_efficientvit-b1.py', '../_base_/settings/cityscapes-detection_swin-1x.py']
model = _base_.cityscapes_model
