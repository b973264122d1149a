_base_ = './mask-rcnn_softpp-t.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
