"""What the pages of all pipelines share: their frame, pictures, words, and files beside them."""
