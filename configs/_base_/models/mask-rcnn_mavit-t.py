_base_ = './mask-rcnn_ravlt-t.py'
pretrained = None
model = dict(backbone=dict(type='mmlinattn.MAViT'))
