"""GFL of MMDetection: ATSS but for its head."""

_base_ = './atss_soft-s.py'
__theirs = __import__('mmlinattn.configs').configs.library_config('mmdet::gfl/gfl_r50_fpn_1x_coco.py')
model = dict(type='GFL', bbox_head=dict(__theirs.model.bbox_head, _delete_=True))
