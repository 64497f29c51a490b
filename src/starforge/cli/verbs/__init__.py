"""One verb a file: what `starforge VERB` does."""
