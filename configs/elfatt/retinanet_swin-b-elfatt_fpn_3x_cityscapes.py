"""RetinaNet with Swin-B-ELFATT on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/elfatt/retinanet_swin-b-elfatt_fpn_3x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_swin-b-elfatt.py', '../_base_/settings/cityscapes-detection_swin-3x.py']
model = _base_.cityscapes_model
