_base_ = './image_classifier.py'
model = dict(backbone=dict(type='mmlinattn.ViTTT', arch='tiny', out_type='avg_featmap'), head=dict(in_channels=192))
