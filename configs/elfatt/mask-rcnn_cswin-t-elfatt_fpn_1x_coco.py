"""Mask R-CNN with CSWin-T-ELFATT on COCO, 1x (12 epochs). Paper: box AP 47.0, mask AP 42.6, 40M parameters.
python tools/train.py configs/elfatt/mask-rcnn_cswin-t-elfatt_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-elfatt.py', '../_base_/settings/coco-instance_swin-1x.py']
