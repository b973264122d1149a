"""Parts of MMSegmentation's models, imported only where one is named."""
