"""Mask R-CNN with CSWin-T-ELFATT on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Paper: box AP 49.4, mask AP 44.0, 40M parameters.
    python tools/train.py configs/elfatt/mask-rcnn_cswin-t-elfatt_fpn_ms-crop-3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-elfatt.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
