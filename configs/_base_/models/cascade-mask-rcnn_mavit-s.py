_base_ = './cascade-mask-rcnn_ravlt-s.py'
pretrained = None
model = dict(backbone=dict(type='mmlinattn.MAViT'))
