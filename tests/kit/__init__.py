"""What tests of several folders share: builders, fixtures, clients and processes."""
