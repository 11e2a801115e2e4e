"""The shared parts of all pages: their frame, pictures, words, and the files next to them."""
