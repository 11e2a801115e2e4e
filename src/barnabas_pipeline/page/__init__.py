"""The shared parts of all pages: their frame, pictures, words, and files beside them."""
