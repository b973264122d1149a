"""Mask R-CNN with CSWin-B-ELFATT on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/elfatt/mask-rcnn_cswin-b-elfatt_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-b-elfatt.py', '../_base_/settings/coco-instance_swin-3x.py']
