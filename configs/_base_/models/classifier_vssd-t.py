_base_ = './image_classifier.py'
model = dict(
    backbone=dict(type='mmlinattn.VSSD', arch='tiny', drop_path_rate=0.2, out_type='avg_featmap'),
    head=dict(in_channels=512),
)
