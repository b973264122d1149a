"""Mask R-CNN with CSWin-T-ELFATT on COCO, 3x (36 epochs, multi-scale).
The paper's 3x has crops and mixed precision too: ms-crop-3x.
    python tools/train.py configs/elfatt/mask-rcnn_cswin-t-elfatt_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-elfatt.py', '../_base_/settings/coco-instance_swin-3x.py']
