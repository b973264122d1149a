"""Mask2Former with Swin-T-ELFATT for instances on COCO, 50 epochs of large-scale jittering.
python tools/train.py configs/elfatt/mask2former_swin-t-elfatt_lsj-50e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask2former_swin-t-elfatt.py', '../_base_/settings/coco-instance_mask2former-50e.py']
