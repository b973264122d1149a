"""RetinaNet with FPN. Still to be given: backbone and neck.in_channels.

P6 is a convolution of C5, as in the official code.
"""

_base_ = 'mmdet::_base_/models/retinanet_r50_fpn.py'

model = dict(backbone=dict(_delete_=True), neck=dict(add_extra_convs='on_input'))
