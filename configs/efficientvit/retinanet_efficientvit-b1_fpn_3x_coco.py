"""RetinaNet with EfficientViT-B1 on COCO, 3x (36 epochs).
python tools/train.py configs/efficientvit/retinanet_efficientvit-b1_fpn_3x_coco.py
"""

_base_ = ['../_base_/models/retinanet_efficientvit-b1.py', '../_base_/settings/coco-detection_swin-3x.py']
