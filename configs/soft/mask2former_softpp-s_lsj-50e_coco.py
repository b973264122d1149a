"""Mask2Former with SOFT++-Small for instances on COCO, 50 epochs of large-scale jittering.
python tools/train.py configs/soft/mask2former_softpp-s_lsj-50e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask2former_softpp-s.py', '../_base_/settings/coco-instance_mask2former-50e.py']
