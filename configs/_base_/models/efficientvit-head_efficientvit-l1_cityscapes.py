_base_ = './efficientvit-head_efficientvit-l1_ade20k.py'
model = dict(
    data_preprocessor=dict(size=(768, 768)), decode_head=dict(channels=256, ratio=1, last_ratio=None, num_classes=19)
)
