"""RetinaNet with Swin-T-ELFATT on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/elfatt/retinanet_swin-t-elfatt_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_swin-t.py', '../_base_/settings/coco-detection_swin-3x.py']
model = dict(backbone=dict(attention='elfatt'))
