"""Mask R-CNN with CSWin-T-ELFATT on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/elfatt/mask-rcnn_cswin-t-elfatt_fpn_3x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-elfatt.py', '../_base_/settings/cityscapes-instance_swin-3x.py']
model = _base_.cityscapes_model
