_base_ = './classifier_ravlt-t.py'
model = dict(backbone=dict(type='mmlinattn.MAViT'), neck=dict(out_channels=2048), head=dict(in_channels=2048))
