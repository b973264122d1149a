"""Mask2Former of MMSegmentation, with 100 queries. Still to be given: backbone and decode_head.in_channels."""

pretrained = None
__theirs = __import__('mmlinattn.configs').configs.library_config(
    'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py'
)
model = __theirs.model
model.backbone = dict()
