_base_ = './fpn_ravlt-t.py'
pretrained = None
model = dict(backbone=dict(type='mmlinattn.MAViT'))
