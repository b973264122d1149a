"""DINO on four scales with Swin-T-ELFATT on COCO, 1x (12 epochs).
python tools/train.py configs/elfatt/dino-4scale_swin-t-elfatt_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/dino-4scale_swin-t-elfatt.py', '../_base_/settings/coco-detection_dino-1x.py']
