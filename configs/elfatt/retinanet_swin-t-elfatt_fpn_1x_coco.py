"""RetinaNet with Swin-T-ELFATT on COCO, 1x (12 epochs).
python tools/train.py configs/elfatt/retinanet_swin-t-elfatt_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_swin-t.py', '../_base_/settings/coco-detection_swin-1x.py']
model = dict(backbone=dict(attention='elfatt'))
