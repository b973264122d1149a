_base_ = './image_classifier.py'
model = dict(
    backbone=dict(
        type='mmlinattn.SwinTransformer', arch='tiny', drop_path_rate=0.2, out_type='avg_featmap', pad_small_map=False
    ),
    head=dict(in_channels=768),
)
