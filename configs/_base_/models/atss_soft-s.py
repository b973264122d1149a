"""ATSS of MMDetection with SOFT-Small."""

pretrained = None
__theirs = __import__('mmlinattn.configs').configs.library_config('mmdet::atss/atss_r50_fpn_1x_coco.py')
model = __theirs.model
model.backbone = dict(
    type='mmlinattn.SOFT',
    arch='small',
    attn_norm=True,
    drop_path_rate=0.1,
    norm_cfg=dict(type='SyncBN', requires_grad=True),
    out_indices=(1, 2, 3),
)
model.neck.update(in_channels=[128, 320, 512], start_level=0)
