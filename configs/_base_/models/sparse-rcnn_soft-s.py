"""Sparse R-CNN of MMDetection, with 300 proposals, with SOFT-Small."""

pretrained = None
__theirs = __import__('mmlinattn.configs').configs.library_config(
    'mmdet::sparse_rcnn/sparse-rcnn_r50_fpn_300-proposals_crop-ms-480-800-3x_coco.py'
)
model = __theirs.model
model.backbone = dict(
    type='mmlinattn.SOFT',
    arch='small',
    attn_norm=True,
    drop_path_rate=0.1,
    norm_cfg=dict(type='SyncBN', requires_grad=True),
)
model.neck.in_channels = [64, 128, 320, 512]
